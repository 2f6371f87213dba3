// SPDX-License-Identifier: Apache-2.0
#include "pthread/wait.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"
#include "pthread/exit.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "sched/outside_section.hpp"
#include "sched/place.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/join.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

constexpr long ns_per_s = 1'000'000'000;

// Of an address that is a multiple of 64 and has 48 bits at most.
constexpr unsigned place_bits = 42;
constexpr std::uintptr_t place_mask = (std::uintptr_t{1} << place_bits) - 1;

// Never null. Where somebody is there will be others: what one has locked and left is not theirs.
const void* name_of(const void* place, std::uintptr_t life) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(place) >> 6 |
                                       life << place_bits);
}

thread_local constinit const void* kept_identity = nullptr;

[[gnu::noinline]] const void* this_outside_thread() noexcept {
  struct alignas(64) aligned {
    std::uintptr_t life;
  };
  static constinit std::atomic<std::uintptr_t> begun{0};
  static thread_local constinit aligned here{0};
  if (kept_identity != nullptr) return kept_identity;
  if (here.life == 0) here.life = begun.fetch_add(1, std::memory_order_relaxed) + 1;
  return name_of(&here, here.life);
}

}  // namespace

int deadline::check_time() const noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  return until->tv_nsec < 0 || until->tv_nsec >= ns_per_s ? EINVAL : 0;
}

bool deadline::has_passed() const noexcept {
  if (until == nullptr) return false;
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec != until->tv_sec ? now.tv_sec > until->tv_sec : now.tv_nsec >= until->tv_nsec;
}

std::int64_t deadline::to_ns() const noexcept {
  if (until == nullptr) return parking::never;
  timespec now;
  clock_gettime(clock, &now);
  // A century is for ever.
  constexpr std::int64_t longest_s = 3'000'000'000;
  std::int64_t s = 0;
  if (__builtin_sub_overflow(std::int64_t{until->tv_sec}, std::int64_t{now.tv_sec}, &s))
    return until->tv_sec > 0 ? parking::never : os::now_ns();
  if (s > longest_s) return parking::never;
  if (s < -longest_s) return os::now_ns();
  const std::int64_t now_ns = os::now_ns();
  const std::int64_t end_ns = now_ns + s * ns_per_s + (until->tv_nsec - now.tv_nsec);
  return can_be_set() ? std::min(end_ns, now_ns + look_again_ns) : end_ns;
}

std::int64_t deadline::look_again(const void* it) noexcept {
  const deadline& d = *static_cast<const deadline*>(it);
  constexpr std::int64_t long_ago = 0;  // whatever the time is for who asks
  return d.has_passed() ? long_ago : d.to_ns();
}

timespec from_now(const timespec& time, clockid_t clock) noexcept {
  timespec end;
  clock_gettime(clock, &end);
  end.tv_nsec += time.tv_nsec;
  if (end.tv_nsec >= ns_per_s) {
    end.tv_nsec -= ns_per_s;
    ++end.tv_sec;
  }
  if (__builtin_add_overflow(end.tv_sec, time.tv_sec, &end.tv_sec)) end.tv_sec = INT64_MAX;
  return end;
}

bool is_cancellable() noexcept {
  const record* const r = self_if_any();
  // Who has no record has no pthread_t that somebody could cancel.
  return r != nullptr && !r->leaving && r->may_be_cancelled.load(std::memory_order_relaxed);
}

bool has_to_leave(const record& r) noexcept {
  if (r.leaving || !r.may_be_cancelled.load(std::memory_order_relaxed)) return false;
  // Without the lock, which a handler that writes somewhere may have interrupted. One that comes
  // now is found by the wait, or by the next call. Partner: strata_pthread_cancel().
  return r.body->extras->interrupted.load(std::memory_order_acquire);
}

static void handle_what_has_come(record& r) {
  end_left_handlers(r);
  if (r.more.signalled.load(std::memory_order_relaxed)) [[unlikely]]
    deliver_signals(r);
}

void act_on_signals() {
  if (record* const r = self_if_any()) handle_what_has_come(*r);
}

void act_on_cancellation() {
  record* const r = self_if_any();
  if (r == nullptr) return;
  handle_what_has_come(*r);
  if (has_to_leave(*r)) leave_thread(*r, PTHREAD_CANCELED);
}

bool is_outside() noexcept { return this_worker().owner == nullptr; }

bool is_unknown_outside() noexcept {
  return is_outside() && (self_if_any() == nullptr || outside_section::is_here());
}

const void* me() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr) return this_outside_thread();
  const stack* const s = stack_of_task();
  return s != nullptr ? name_of(s, s->lives) : name_of(&w, 0);
}

const void* me_anywhere() noexcept {
  // A process's number has 22 bits.
  const std::uintptr_t here = reinterpret_cast<std::uintptr_t>(me()) & place_mask;
  return reinterpret_cast<const void*>(here | static_cast<std::uintptr_t>(getpid()) << place_bits);
}

[[gnu::noinline]] void keep_identity() noexcept { kept_identity = me(); }

bool is_process_thread() noexcept { return getpid() == static_cast<pid_t>(syscall(SYS_gettid)); }

[[gnu::noinline]] bool runs_on_process_thread() noexcept {
  enum class answer : unsigned char { unknown, yes, no };
  static thread_local constinit answer known = answer::unknown;
  if (known == answer::unknown) known = is_process_thread() ? answer::yes : answer::no;
  return known == answer::yes;
}

unparked give_way(std::int64_t deadline_ns) {
  if (deadline_ns <= os::now_ns()) return unparked::timed_out;
  if (this_worker().owner == nullptr || nothing_else_is_ready()) {
    // Not as fast as it can: there is little to be had here now.
    constexpr timespec a_little{0, 50'000};
    nanosleep(&a_little, nullptr);
  } else {
    yield_stack();
  }
  return unparked::woken;
}

unparked park_or_give_way(const parking& how) {
  if (record* const r = self_if_any()) end_left_handlers(*r);
  return wait_or_give_way(
      how.deadline_ns, [&] { return park(how); },
      [&] {
        if (how.then != nullptr) how.then(how.then_argument);
      });
}

bool stops_others() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr || static_cast<const place&>(w).current == nullptr) return false;
  const record* const r = self_if_any();
  if (r == nullptr || !r->is_main || living.load(std::memory_order_relaxed) != 0) return true;
  return !runs_on_process_thread();
}

unparked polled_wait::pause(const deadline& until, bool interruptible) {
  const char nobody_wakes = 0;
  const std::int64_t end_ns = os::now_ns() + pauses_.next_pause_ns();
  return park_or_give_way({.what = what_,
                           .address = &nobody_wakes,
                           .deadline_ns = std::min(end_ns, until.to_ns()),
                           .interruptible = interruptible});
}

}  // namespace strata::detail::posix

extern "C" [[gnu::noinline]] int* strata_errno_location() { return &errno; }

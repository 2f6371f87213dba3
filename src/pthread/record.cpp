// SPDX-License-Identifier: Apache-2.0
#include "pthread/record.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <utility>

#include "os/clock.hpp"
#include "os/no_signals.hpp"
#include "os/own_thread.hpp"
#include "pthread/affinity.hpp"
#include "pthread/holding.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/robust.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/specifics.hpp"

namespace strata::detail::posix {
namespace {

// A user's address never has this bit, so it tells ours from the C library's, which are pointers.
constexpr pthread_t ours_mark = pthread_t{1} << 63;
static_assert(sizeof(pthread_t) == 8, "a pthread_t holds a number and how often it was used");
constexpr std::uint32_t use_mask = 0x7FFF'FFFF;

constexpr std::uint32_t part_size = records_at_once;
constexpr std::uint32_t parts_max = (1U << record_index_bits) / part_size;
// Written with the lock; read by anybody who has a pthread_t from in there.
constinit std::array<std::atomic<record*>, parts_max> parts{};
constinit spin_lock pool_lock;
constinit record* free_records = nullptr;
constinit std::uint32_t made = 0;

// The first of them are asked for by handlers, too, by pthread_self(), when malloc() may be what
// those have interrupted, and by an allocator that begins.
alignas(record) constinit std::array<std::byte, sizeof(record) * part_size> first_part{};

// A handler that interrupts a thread without a record may ask for one, and so for the lock: there
// none comes meanwhile.
class holding_pool {
 public:
  holding_pool() noexcept {
    if (is_outside() && self_if_any() == nullptr) without_handlers_.emplace();
    lock_.emplace(pool_lock);
  }
  holding_pool(const holding_pool&) = delete;
  holding_pool& operator=(const holding_pool&) = delete;

 private:
  std::optional<os::no_signals> without_handlers_;
  std::optional<holding> lock_;
};

bool grow() noexcept {
  const std::uint32_t part = made / part_size;
  if (part == parts_max) return false;
  std::byte* const room =
      part == 0 ? first_part.data()
                : static_cast<std::byte*>(::operator new (
                      first_part.size(), std::align_val_t{alignof(record)}, std::nothrow));
  if (room == nullptr) return false;
  auto* const raw = reinterpret_cast<record*>(room);
  for (std::uint32_t i = part_size; i-- > 0;) {
    record* const r = ::new (room + i * sizeof(record)) record(made + i);
    r->next_free = free_records;
    free_records = r;
  }
  made += part_size;
  parts[part].store(raw, std::memory_order_release);
  return true;
}

}  // namespace

std::atomic<std::uint32_t> living{0};

const char* kind_pthread() { return "pthread"; }

void set_title(record& r, std::string_view title) noexcept {
  const std::size_t length = std::min(title.size(), r.title.size() - 1);
  std::copy_n(title.data(), length, r.title.data());
  r.title[length] = '\0';
}

record* take_record() noexcept {
  record* r = nullptr;
  {
    const holding_pool lock;
    if (free_records == nullptr && !grow()) return nullptr;
    r = free_records;
    free_records = r->next_free;
  }
  r->result = nullptr;
  r->asked_bytes = 0;
  r->given_stack = nullptr;
  r->guard_bytes = 0;
  r->inherits_scheduling = true;
  r->given_up = nullptr;
  r->joins.store(nullptr, std::memory_order_relaxed);
  r->runs_on.store(nullptr, std::memory_order_relaxed);
  r->policy.store(SCHED_OTHER, std::memory_order_relaxed);
  r->priority.store(0, std::memory_order_relaxed);
  r->body = r;
  r->counted = false;
  r->streams_held = 0;
  r->handler_frame = 0;
  r->may_be_cancelled.store(true, std::memory_order_relaxed);
  r->cancel_type = PTHREAD_CANCEL_DEFERRED;
  r->leaving = false;
  r->base = nullptr;
  r->handlers = nullptr;
  r->unwind_buffer = nullptr;
  r->is_main = false;
  forget_affinity(*r);
  set_title(*r, kind_pthread());
  const holding lock(r->more.lock);
  r->pending.forget();
  // Nothing is offered to it until begin_mask().
  sigfillset(&r->blocked);
  sigfillset(&r->blocked_by_program);
  r->added_by_handlers.store(0, std::memory_order_relaxed);
  r->running_handlers.store(0, std::memory_order_relaxed);
  r->handles_in_section.store(false, std::memory_order_relaxed);
  r->handlers_below = 0;
  r->offer = nullptr;
  r->ends_by_elsewhere = false;
  r->awaits_handler = false;
  r->waits_for_signal = false;
  r->is_os_thread = false;
  r->leaves_natively = false;
  r->life.store(0, std::memory_order_relaxed);
  return r;
}

void give_record(record& r) noexcept {
  {
    const holding lock(r.more.lock);
    std::uint32_t next = (r.use.load(std::memory_order_relaxed) + 1) & use_mask;
    if (next == 0) next = 1;
    r.use.store(next, std::memory_order_release);
    r.more.interrupted = false;
    r.more.signalled.store(false, std::memory_order_relaxed);
    r.more.heeds_all.store(false, std::memory_order_relaxed);
    r.more.name.clear();
  }
  // Its stack waits by it until the process ends, and what comes is asked by it whether it is
  // main() that runs there. Partners: end_process_with(), the loads of main_record.
  if (r.is_main) return;
  const holding_pool lock;
  r.next_free = free_records;
  free_records = &r;
}

pthread_t handle_of(const record& r) noexcept {
  return ours_mark | (pthread_t{r.use.load(std::memory_order_relaxed)} << 32) | r.index;
}

bool is_ours(pthread_t t) noexcept { return (t & ours_mark) != 0; }

bool is_still(const record& r, pthread_t t) noexcept { return handle_of(r) == t; }

record* find_record(pthread_t t) noexcept {
  if (!is_ours(t)) return nullptr;
  const auto index = static_cast<std::uint32_t>(t);
  if (index / part_size >= parts_max) return nullptr;
  record* const part = parts[index / part_size].load(std::memory_order_acquire);
  if (part == nullptr) return nullptr;
  record* const r = part + index % part_size;
  return is_still(*r, t) ? r : nullptr;
}

record* first_record(bool (*wants)(record&, void*), void* argument) noexcept {
  std::uint32_t count = 0;
  {
    const holding lock(pool_lock);
    count = made;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    record& r = parts[i / part_size].load(std::memory_order_acquire)[i % part_size];
    if (wants(r, argument)) return &r;
  }
  return nullptr;
}

void end_record(record& r) noexcept {
  if (!r.robust_held.empty()) [[unlikely]]
    abandon_robust(r);
  r.runs_on.store(nullptr, std::memory_order_relaxed);
  // Release: the joiner sees what the thread did. Partner: strata_pthread_join().
  const bool was_counted = r.counted;
  const void* const address = &r.life;
  const std::uint32_t before = r.life.fetch_or(record::ended, std::memory_order_acq_rel);
  if ((before & record::detached) != 0) {
    give_record(r);
  } else if ((before & record::joining) != 0) {
    unpark(address, UINT32_MAX);
  }
  if (was_counted && living.fetch_sub(1, std::memory_order_acq_rel) == 1)
    unpark(&living, UINT32_MAX);
}

void end_values(record& r) {
  end_keys(r);
  end_specifics(r.more.specifics, r.more.at_exit);
  end_keys(r);
  r.more.specifics.clear();
  r.more.at_exit.clear();
}

void hold_records() noexcept { pool_lock.lock(); }
void release_records() noexcept { pool_lock.unlock(); }
bool are_there_records() noexcept { return parts[0].load(std::memory_order_acquire) != nullptr; }

void free_record_locks() noexcept {
  const auto let_go = [](spin_lock& lock) {
    if (lock.is_held()) lock.unlock();  // pages that are not written to stay the parent's, too
  };
  let_go(kept_signals_lock);
  for (std::uint32_t i = 0; i < made; ++i)
    let_go(parts[i / part_size].load(std::memory_order_relaxed)[i % part_size].more.lock);
  if (const record* const mine = self_if_any()) let_go(mine->body->extras->lock);
}

void forget_other_threads(record& mine) noexcept {
  living.store(0, std::memory_order_relaxed);
  forget_shared_robust(mine);
  // Nothing is offered to those that are not here.
  main_record.store(nullptr, std::memory_order_relaxed);
  mine.offer = nullptr;
  mine.handled_elsewhere.store(false, std::memory_order_relaxed);
  // What is pending is the parent's, which handles it.
  mine.pending.forget();
  mine.ends_by_elsewhere = false;
  mine.more.signalled.store(false, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < made; ++i) {
    record& r = parts[i / part_size].load(std::memory_order_relaxed)[i % part_size];
    // Pages that are not written to stay the parent's, too.
    if (&r == &mine || (r.life.load(std::memory_order_relaxed) & record::ended) != 0) continue;
    r.more.parked = nullptr;
    r.offer = nullptr;
    r.life.fetch_or(record::ended, std::memory_order_relaxed);
  }
}

void wait_until_alone() {
  constexpr auto what = "the last thread to end";
  const auto others = [](void*) { return living.load(std::memory_order_acquire) != 0; };
  // Those of the program that are the C library's: nobody tells us when they end.
  constexpr std::int64_t shortest_ns = 500'000;
  constexpr std::int64_t longest_ns = 20'000'000;
  std::int64_t pause_ns = shortest_ns;
  // Twice in succession: one that ends while we look may have made another before, of either kind.
  // Both looks all but never miss one so.
  for (int found_none = 0; found_none < 2;) {
    if (others(nullptr)) {
      found_none = 0;
      park({.what = what, .address = &living, .still = others});
    } else if (os::has_other_threads()) {
      found_none = 0;
      const char nobody_wakes = 0;
      (void)park_or_give_way(
          {.what = what, .address = &nobody_wakes, .deadline_ns = os::now_ns() + pause_ns});
      pause_ns = std::min(2 * pause_ns, longest_ns);
    } else {
      ++found_none;
    }
  }
}

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
// Which record the calling thread has: its own, or one that is made when it is asked for where we
// have not made the thread.
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "os/no_signals.hpp"
#include "pthread/affinity.hpp"
#include "pthread/fork.hpp"
#include "pthread/holding.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/detail/specifics.hpp"
#include "threads/specifics.hpp"

namespace strata::detail::posix {
namespace {

// A wait was ended by somebody else than who it waits for.
void at_wake(thread_block& b, unparked why) {
  auto& r = static_cast<record&>(b);
  if (why == unparked::signalled) {
    deliver_signals(r);
  } else {
    act_on_cancellation();
  }
}

void mark_as_record(thread_block&) noexcept {}
constexpr task_type adopted_record{nullptr, nullptr, nullptr, &kind_pthread};

bool is_record(const thread_block* b) noexcept {
  return b != nullptr && b->destroy == &mark_as_record;
}

const char key_of_attached = 0;

// Whoever does not join it by now never will.
void end_foreign(record& r) {
  end_signals(r);
  {
    // Who cancels it does so with the lock. Partner: strata_pthread_cancel().
    const holding lock(r.more.lock);
    r.body = &r;
  }
  std::uint32_t life = r.life.load(std::memory_order_relaxed);
  while ((life & record::joining) == 0 &&
         !r.life.compare_exchange_weak(life, life | record::detached, std::memory_order_relaxed)) {
  }
}

void end_attached(void* value, void*) {
  auto& r = *static_cast<record*>(value);
  end_keys(r);
  end_foreign(r);
  end_record(r);
}

void end_adopted(stack& s) {
  auto& r = *static_cast<record*>(s.thread);
  end_values(r);
  end_foreign(r);
  s.thread = nullptr;
  s.title = nullptr;
  s.at_end = nullptr;
  end_record(r);
}

thread_local record* outside_record = nullptr;

// The end of a thread from outside is seen by a value of the C library's: that is destroyed when
// the thread ends, after its C++ objects, and not when main() goes on in exit(), where its own
// values and locks are to be what they were. The value says nothing but that: the record of a
// thread is the one that is found here.
constexpr std::int64_t none = -1;
constinit std::atomic<std::int64_t> key_of_outside{none};

// Destructors of other values use the record, or need a new one where it has gone. So it stays
// until the last round but one: what is made from then on is found by the last.
constexpr int rounds_kept = PTHREAD_DESTRUCTOR_ITERATIONS - 2;
thread_local constinit int rounds = 0;

void end_outside(void*) {
  record* const r = outside_record;
  if (r != nullptr) end_keys(*r);
  end_own_specifics();  // what these have set: the thread's others have been destroyed before
  if (rounds++ < rounds_kept && watch_outside_end()) return;
  // The child of its fork, or a main() that the C library has ended: our workers never end.
  if (has_process_runtime() && is_process_thread()) end_process_with(outside_record);
  if (r == nullptr) return;
  end_keys(*r);
  end_foreign(*r);
  leave_outside_record(*r);
  end_record(*r);
}

// -1 where the C library has none left. Threads, and handlers, may make it at the same time.
std::int64_t make_key_of_outside() noexcept {
  std::int64_t known = key_of_outside.load(std::memory_order_acquire);
  pthread_key_t mine{};
  if (known != none || pthread_key_create(&mine, &end_outside) != 0) return known;
  if (key_of_outside.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return mine;
  pthread_key_delete(mine);
  return known;
}

// As early as we can: so it is one of the few that a thread can set without memory. What runs
// before all constructors makes it when it needs it.
[[gnu::constructor(101)]] void make_it_early() { (void)make_key_of_outside(); }

[[gnu::noinline]] record* of_outside_thread() noexcept { return outside_record; }

[[gnu::noinline]] record& make_outside() {
  // A handler would make another.
  const os::no_signals guard;
  if (outside_record != nullptr) return *outside_record;  // one has, just before
  record* const r = take_record();
  if (r == nullptr) throw std::bad_alloc();
  if (!watch_outside_end()) {
    r->life.store(record::detached, std::memory_order_relaxed);
    end_record(*r);
    throw std::bad_alloc();
  }
  r->os_thread = pthread_self();
  // In the child of a vfork() it may be either, and the C library's way is right for both.
  r->leaves_natively = !is_process_thread() || is_in_child_of_vfork();
  r->type = &adopted_record;
  begin_mask(*r, guard.before(), true);
  outside_record = r;
  outside_block = r;
  return *r;
}

}  // namespace

bool watch_outside_end() noexcept {
  const std::int64_t key = make_key_of_outside();
  return key == none || pthread_setspecific(static_cast<pthread_key_t>(key), &key_of_outside) == 0;
}

record::record(std::uint32_t number) noexcept : thread_block(adopted_record, 0), index(number) {
  destroy = &mark_as_record;
  extras = &more;
  more.at_wake = &at_wake;
}

record* self_if_any() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr) return of_outside_thread();
  thread_block* const b = current_block_if_any();
  if (is_record(b)) return static_cast<record*>(b);
  if (b == nullptr || b->extras == nullptr) return nullptr;
  return static_cast<record*>(get_specific(&key_of_attached).value);
}

record& self() {
  if (record* const r = self_if_any()) return *r;
  if (this_worker().owner == nullptr) return make_outside();
  // A handler that has interrupted a worker between its threads.
  if (this_place().current == nullptr) {
    record* const r = of_outside_thread();
    return r != nullptr ? *r : make_outside();
  }
  thread_block* const b = current_block_if_any();
  record* const r = take_record();
  if (r == nullptr) throw std::bad_alloc();
  r->type = &adopted_record;
  // Workers that block all signals say nothing by that of what runs on them.
  sigset_t mask = mask_at_start();
  if (!blocks_signals(this_worker().owner) || is_process_thread())
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  begin_mask(*r, mask, false);
  r->runs_on.store(this_place().current->self, std::memory_order_release);
  if (b == nullptr) {
    stack& s = *this_place().current;
    s.thread = r;
    s.at_end = &end_adopted;
  } else {
    r->body = b;
    (void)extras_of(*b);
    exchange_specific(&key_of_attached, {r, &end_attached, nullptr});
  }
  return *r;
}

void become_outside(record& r) noexcept {
  keep_identity();
  strata_current_worker = &no_worker;
  r.is_os_thread = true;
  r.os_thread = pthread_self();
  r.counted = false;
  sigemptyset(&r.opened);
  r.opened_any = false;
  outside_record = &r;
  outside_block = r.body;
  pthread_sigmask(SIG_SETMASK, &r.blocked, nullptr);
  bind_for_good(r);
}

void leave_outside_record(const record& r) noexcept {
  if (outside_record != &r) return;
  outside_record = nullptr;
  outside_block = nullptr;
}

}  // namespace strata::detail::posix

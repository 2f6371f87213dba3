// SPDX-License-Identifier: Apache-2.0
// The OS threads that block in place of workers. There is one pool in a process: it holds nothing
// of any runtime, and threads that block cost no core.
#include "strata/blocking.hpp"

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "context/overflow.hpp"
#include "os/clock.hpp"
#include "os/no_signals.hpp"
#include "os/own_thread.hpp"
#include "os/unbound.hpp"
#include "sched/scheduler.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/detail/worker.hpp"
#include "threads/after_fork.hpp"
#include "threads/errno_here.hpp"

namespace strata::detail {
namespace {

constexpr unsigned threads_max = 256;
// What blocking_call::done becomes.
constexpr std::uint32_t is_done = 1;
constexpr std::uint32_t is_refused = 2;  // there is no OS thread for it
constexpr auto idle_for = std::chrono::seconds(1);

class pool;
pool& the_pool();

class pool {
 public:
  explicit pool(pool* forgotten = nullptr) : forgotten_(forgotten) {}

  void add(blocking_call& call) {
    // Told without the lock, which the thread takes as soon as it wakes up.
    if (queue(call)) more_.notify_one();
  }

 private:
  // True: a thread waits for it, and is to be told.
  bool queue(blocking_call& call) {
    const std::lock_guard lock(mutex_);
    (last_ != nullptr ? last_->next : first_) = &call;
    last_ = &call;
    ++waiting_;
    if (waiting_ <= idle_) return true;
    if (threads_ < threads_max && !begin_thread() && threads_ == 0) {
      // Nobody would come for it. It is the only one: a thread ends when none waits.
      first_ = last_ = nullptr;
      --waiting_;
      finish(call, is_refused);
    }
    return false;
  }

  // False: refused by the system. Here nothing may be thrown: the caller's stack is given up.
  bool begin_thread() {
    const os::no_signals there;
    const os::unbound where;  // it is no worker: it runs where the process may, not beside us
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::exception&) {
      return false;
    }
    ++threads_;
    return true;
  }

  // The call may be gone as soon as it is done; it is woken by its address alone. Release: what it
  // did is visible to the caller. Partner: outcome_of().
  static void finish(blocking_call& call, std::uint32_t how) {
    const void* const address = &call.done;
    std::atomic_ref(call.done).store(how, std::memory_order_release);
    unpark(address, 1);
  }

  // Between calls it takes no signals. In a call it has blocked what the caller's worker has: that
  // is what the call would find there, and so do programs that it starts.
  void run() {
    sigset_t all;
    sigfillset(&all);
    const os::own_thread here("strata-blocking");
    watched_os_stack mine;
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      const bool found = more_.wait_for(lock, idle_for, [this] { return first_ != nullptr; });
      --idle_;
      if (!found) break;
      blocking_call& call = *first_;
      first_ = call.next;
      if (first_ == nullptr) last_ = nullptr;
      --waiting_;
      lock.unlock();
      if (!call.takes_no_signals) pthread_sigmask(SIG_SETMASK, &call.mask, nullptr);
      mine.works_for(call.caller);
      errno = call.error;
      call.run(call);
      if (&the_pool() != this) [[unlikely]]
        end_child_without_thread();
      call.error = errno;
      mine.works_for(nullptr);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      finish(call, is_done);
      lock.lock();
    }
    --threads_;
  }

  std::mutex mutex_;
  std::condition_variable more_;
  blocking_call* first_ = nullptr;
  blocking_call* last_ = nullptr;
  unsigned waiting_ = 0;
  unsigned idle_ = 0;
  unsigned threads_ = 0;
  [[maybe_unused]] pool* const forgotten_;  // what was before a fork, for those who look for leaks
};

// Never destroyed: threads may be in it when the process ends. The first takes no memory: here the
// caller's stack is given up, and nobody can be refused.
std::atomic<pool*>& current_pool() {
  alignas(pool) static std::array<std::byte, sizeof(pool)> room;
  static std::atomic<pool*> p{::new (room.data()) pool};
  return p;
}
pool& the_pool() { return *current_pool().load(std::memory_order_acquire); }

std::uint32_t outcome_of(blocking_call& call) {
  return std::atomic_ref(call.done).load(std::memory_order_acquire);
}
bool is_running(void* argument) { return outcome_of(*static_cast<blocking_call*>(argument)) == 0; }

void hand_over(void* argument) { the_pool().add(*static_cast<blocking_call*>(argument)); }

// A runtime does not end under a call, which writes to the caller's stack when it is over. Changed
// by the caller's worker, which looks whether all is idle when it falls asleep.
class counted_call {
 public:
  explicit counted_call(scheduler& home) noexcept : home_(home) {
    home_.calls_in_progress.fetch_add(1, std::memory_order_seq_cst);
  }
  ~counted_call() { home_.calls_in_progress.fetch_sub(1, std::memory_order_seq_cst); }
  counted_call(const counted_call&) = delete;
  counted_call& operator=(const counted_call&) = delete;

 private:
  scheduler& home_;
};

}  // namespace

void forget_blocking_threads() {
  // Its lock may be held by one of them.
  current_pool().store(new pool(&the_pool()), std::memory_order_release);
}

void call_blocking(blocking_call& call) {
  scheduler* const home = this_worker().owner;
  if (home == nullptr) return call.run(call);
  const counted_call here(*home);
  call.error = errno_here();
  call.caller = this_place().current;
  if (!call.takes_no_signals) pthread_sigmask(SIG_SETMASK, nullptr, &call.mask);
  // Handed over once we can be woken. An interruption that has come before lets nobody wait: then
  // the call begins all the same.
  unparked why = park({.what = wait_for_call,
                       .address = &call.done,
                       .then = &hand_over,
                       .then_argument = &call,
                       .interruptible = call.interruptible,
                       .lasts = true});
  while (is_running(&call)) {
    constexpr std::int64_t soon_ns = 1'000'000;
    const bool by_others = why == unparked::signalled || why == unparked::interrupted;
    const bool again = (by_others || why == unparked::timed_out) && call.disturbed != nullptr &&
                       call.disturbed(call, why);
    parking rest{.what = wait_for_call,
                 .address = &call.done,
                 .still = &is_running,
                 .argument = &call,
                 .deadline_ns = again ? os::now_ns() + soon_ns : parking::never,
                 .interruptible = call.interruptible && !again,
                 .lasts = true};
    try {
      why = park(rest);
    } catch (const std::exception&) {
      // No memory or no thread for a deadline: then not again. The caller has to wait.
      rest.deadline_ns = parking::never;
      why = park(rest);
    }
  }
  set_errno_here(call.error);
  // Better late than not at all: it stops its worker.
  if (outcome_of(call) == is_refused) call.run(call);
}

}  // namespace strata::detail

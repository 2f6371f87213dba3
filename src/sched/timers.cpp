// SPDX-License-Identifier: Apache-2.0
#include "sched/timers.hpp"

#include <pthread.h>

#include <algorithm>

#include "os/clock.hpp"
#include "os/no_signals.hpp"

namespace strata::detail {

timers::~timers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changes_.fetch_add(1, std::memory_order_release);
  }
  os::futex_wake(changes_, 1);
  if (thread_.joinable()) thread_.join();
}

void timers::add(entry& e, std::int64_t deadline_ns) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      const os::no_signals there;
      thread_ = std::thread([this] { run(); });
    }
    e.where = entries_.emplace(deadline_ns, &e);
    e.armed = true;
    count_.fetch_add(1, std::memory_order_seq_cst);
    first = e.where == entries_.begin();
    if (first) changes_.fetch_add(1, std::memory_order_release);
  }
  if (first) os::futex_wake(changes_, 1);
}

void timers::remove(entry& e) {
  const std::lock_guard lock(mutex_);
  if (!e.armed) return;
  e.armed = false;
  entries_.erase(e.where);
  count_.fetch_sub(1, std::memory_order_seq_cst);
}

void timers::run() {
  pthread_setname_np(pthread_self(), "strata-timers");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::int64_t now = os::now_ns();
    while (!entries_.empty() && entries_.begin()->first <= now) {
      entry& e = *entries_.begin()->second;
      entries_.erase(entries_.begin());
      e.armed = false;
      e.fire(e);
      // Not before what it continues can be seen: a runtime must not look idle in between.
      count_.fetch_sub(1, std::memory_order_seq_cst);
    }
    const std::uint32_t seen = changes_.load(std::memory_order_acquire);
    const std::int64_t sleep_ns =
        entries_.empty() ? os::futex_forever_ns
                         : std::max<std::int64_t>(entries_.begin()->first - os::now_ns(), 0);
    lock.unlock();
    os::blocking_futex_wait(changes_, seen, sleep_ns);
    lock.lock();
  }
}

}  // namespace strata::detail

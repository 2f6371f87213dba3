// SPDX-License-Identifier: Apache-2.0
#include "sched/timers.hpp"

#include <algorithm>
#include <utility>

#include "os/clock.hpp"
#include "os/no_signals.hpp"
#include "os/own_thread.hpp"

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
    if (clock_ == nullptr && !thread_.joinable()) {
      const os::no_signals there;
      thread_ = std::thread([this] { run(); });
    }
    e.where = entries_.emplace(deadline_ns, &e);
    e.armed = true;
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (clock_ != nullptr) {
      first = e.where == entries_.begin();
    } else {
      first = deadline_ns < sleeps_until_ns_;
      if (first) {
        sleeps_until_ns_ = deadline_ns;
        changes_.fetch_add(1, std::memory_order_release);
      }
    }
  }
  if (!first) return;
  if (clock_ == nullptr)
    os::futex_wake(changes_, 1);
  else
    clock_->alarm_at(deadline_ns);
}

void timers::remove(entry& e) {
  const std::lock_guard lock(mutex_);
  if (!e.armed) return;
  e.armed = false;
  entries_.erase(e.where);
  count_.fetch_sub(1, std::memory_order_seq_cst);
}

std::int64_t timers::now_ns() const noexcept {
  return clock_ != nullptr ? clock_->now_ns() : os::now_ns();
}

void timers::fire_until(std::int64_t now_ns) noexcept {
  while (!entries_.empty() && entries_.begin()->first <= now_ns) {
    entry& e = *entries_.begin()->second;
    if (e.put_off != nullptr) {
      if (const std::int64_t later_ns = e.put_off(e); later_ns > now_ns) {
        auto node = entries_.extract(entries_.begin());
        node.key() = later_ns;
        e.where = entries_.insert(std::move(node));
        continue;
      }
    }
    entries_.erase(entries_.begin());
    e.armed = false;
    e.fire(e);
    // Not before what it continues can be seen: a runtime must not look idle in between.
    count_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void timers::fire_due() {
  std::int64_t next_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    fire_until(now_ns());
    if (entries_.empty()) return;
    next_ns = entries_.begin()->first;
  }
  clock_->alarm_at(next_ns);
}

void timers::run() {
  const os::own_thread here("strata-timers");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    fire_until(os::now_ns());
    const std::uint32_t seen = changes_.load(std::memory_order_acquire);
    sleeps_until_ns_ = entries_.empty() ? INT64_MAX : entries_.begin()->first;
    const std::int64_t sleep_ns = sleeps_until_ns_ == INT64_MAX
                                      ? os::futex_forever_ns
                                      : std::max<std::int64_t>(sleeps_until_ns_ - os::now_ns(), 0);
    lock.unlock();
    os::blocking_futex_wait(changes_, seen, sleep_ns);
    lock.lock();
  }
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "sched/lone_watch.hpp"

#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "sched/scheduler.hpp"
#include "sched/waiting_stacks.hpp"

namespace strata::detail {

lone_watch::lone_watch(std::int64_t after_ns, std::function<std::string()> describe)
    : after_ns_(after_ns), describe_(std::move(describe)), moved_at_(os::now_ns()) {}

void lone_watch::ask() noexcept {
  // Ask, then wake: who falls asleep meanwhile sees it. Partners: scheduler::sleep(),
  // scheduler::run_as_guest().
  asked_.store(true, std::memory_order_seq_cst);
  if (workers_->wake_somebody()) return;
  constexpr std::string_view busy =
      "strata: all workers are at work; who waits for what follows when one is about to sleep\n";
  (void)!::write(STDERR_FILENO, busy.data(), busy.size());
}

void lone_watch::stop() {
  const std::lock_guard lock(mutex_);
  over_ = true;
}

// Half of it, so that a stall is noticed in time.
std::int64_t lone_watch::look_ns() const noexcept {
  return after_ns_ == 0 ? os::futex_forever_ns : after_ns_ / 2;
}

void lone_watch::look() noexcept {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  const std::int64_t now = os::now_ns();
  const std::uint64_t steps = workers_->steps();
  if (std::exchange(steps_seen_, steps) != steps ||
      !workers_->is_idle(scheduler::waits::for_times)) {
    moved_at_ = now;
    told_ = false;
    return;
  }
  if (told_ || now - moved_at_ < after_ns_ || !is_stuck()) return;
  if (!workers_->is_idle(scheduler::waits::for_times) || workers_->steps() != steps)
    return;  // it has moved meanwhile
  told_ = true;
  tell(
      "strata: nothing moves any more, and something waits, for ever unless what it waits for "
      "comes from outside the process:\n");
}

// Nothing can go on by itself, and somebody outside counts on it. Who has only left threads here
// will tell them when there is something to do.
bool lone_watch::is_stuck() {
  if (!workers_->is_awaited()) return false;
  if (workers_->somebody_waits()) return true;
  const waiting_stacks found = workers_->who_waits();
  return found.for_others != 0 && found.for_the_world == 0;
}

void lone_watch::answer() noexcept {
  // A signal that reaches a launcher and its node comes here twice.
  constexpr std::int64_t once_ns = 1'000'000'000;
  if (!asked_.exchange(false, std::memory_order_seq_cst)) return;
  const std::lock_guard lock(mutex_);
  const std::int64_t now = os::now_ns();
  if (over_ || now - answered_at_ < once_ns) return;
  answered_at_ = now;
  tell("");
}

void lone_watch::tell(const std::string& beginning) {
  // One write, so that the reports of several are not mixed.
  std::fputs((beginning + describe_()).c_str(), stderr);
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// What a person wants to know of a computation that does not end.
#include "sched/scheduler.hpp"

namespace strata::detail {

std::string scheduler::describe_waits() {
  constexpr std::size_t waits_max = 20;
  const statistics now = read_statistics();
  const std::string asleep = std::to_string(idle_.sleepers());
  std::string text = "  " + std::to_string(places_.size()) + " workers, " + asleep +
                     " asleep; tasks queued: about " + std::to_string(load()) +
                     "; frames and tokens alive: " + std::to_string(now.live_frames) +
                     "; fibers run so far: " + std::to_string(now.total().fibers) + "\n";
  const std::lock_guard lock(failure_mutex_);
  std::size_t shown = 0;
  for (const failure_listener* l : listeners_) {
    if (++shown > waits_max) break;
    text += "  a task waits for " + l->describe() + "\n";
  }
  if (listeners_.size() > waits_max)
    text += "  and " + std::to_string(listeners_.size() - waits_max) + " more tasks wait\n";
  if (listeners_.empty()) text += "  no task waits for fibers\n";
  return text;
}

}  // namespace strata::detail

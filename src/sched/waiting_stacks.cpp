// SPDX-License-Identifier: Apache-2.0
// What a person wants to know of a computation that does not end.
#include "sched/waiting_stacks.hpp"

#include "base/spelling.hpp"
#include "context/stack_pool.hpp"
#include "os/safe_read.hpp"
#include "sched/scheduler.hpp"

namespace strata::detail {

waiting_stacks scheduler::who_waits() {
  constexpr std::size_t text_max = 63;
  waiting_stacks found;
  os::copied<stack> copy;
  for (stack_pool* const pool : all_stacks()) {
    for (std::size_t i = 0; i < pool->cut(); ++i) {
      if (!copy.read(pool->header(i))) continue;
      const stack& one = copy.get();
      if (one.kind == nullptr || one.waits_for == nullptr) continue;
      const std::string what = os::safe_text(one.waits_for, text_max);
      if (what.empty()) continue;
      ++(what == wait_for_descriptor || what == wait_for_call ? found.for_the_world
                                                              : found.for_others);
      waiting_stacks::group& g = found.by_what[what];
      ++g.stacks;
      if (g.names.size() == waiting_stacks::names_max) continue;
      std::string name = one.title != nullptr ? os::safe_text(one.title, text_max)
                                              : std::string(plain_name(one.kind->name()));
      for (char& c : name) {
        if (static_cast<unsigned char>(c) < ' ') c = '?';
      }
      g.names.push_back(std::move(name));
    }
  }
  return found;
}

std::string waiting_stacks::text() const {
  std::string all;
  for (const auto& [what, g] : by_what) {
    all += "  " + std::to_string(g.stacks) +
           (g.stacks == 1 ? " thread or task waits for " : " threads or tasks wait for ") + what;
    const char* before = ": ";
    for (const std::string& name : g.names) {
      all += before + ("\"" + name + "\"");
      before = ", ";
    }
    all += g.names.size() < g.stacks ? ", ...\n" : "\n";
  }
  return all;
}

std::string scheduler::describe_waits() {
  const statistics now = read_statistics();
  const std::string asleep = std::to_string(idle_.sleepers());
  return "  " + std::to_string(places_.size()) +
         (places_.size() == 1 ? " worker, " : " workers, ") + asleep +
         " asleep; tasks queued: about " + std::to_string(load()) +
         "; frames and tokens alive: " + std::to_string(now.live_frames) +
         "; fibers run so far: " + std::to_string(now.total().fibers) + "\n" + who_waits().text() +
         failure.describe_listeners();
}

}  // namespace strata::detail

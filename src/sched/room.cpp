// SPDX-License-Identifier: Apache-2.0
// Whether there will be a stack for one more thread. A thread takes its stack when it begins, where
// a refusal could not be told to anybody; so those that are alive are counted, begun or not. Each
// worker counts for itself, and looks at all counts the more often the less room there is: together
// they cannot use more than half of what was left at the last look.
#include <algorithm>
#include <string>
#include <system_error>

#include "sched/scheduler.hpp"

namespace strata::detail {

void scheduler::look_for_room(place& p) {
  constexpr unsigned interval_max = 1024;
  // For roots, stolen branches and forks at the end of a stack.
  const std::size_t others = 16 * places_.size();
  std::uint64_t made = 0;
  std::uint64_t ended = 0;
  // Ended first: one that is made and ends in between counts as alive.
  for (const auto& other : places_) ended += other->threads_ended.read();
  for (const auto& other : places_) made += other->threads_made.read();
  const std::size_t room = stacks.capacity() > others ? stacks.capacity() - others : 1;
  const std::uint64_t alive = made > ended ? made - ended : 0;
  if (alive <= room) {
    const std::size_t left = room - static_cast<std::size_t>(alive);
    p.until_room_is_checked = static_cast<unsigned>(
        std::clamp<std::size_t>(left / (2 * places_.size()), 1, interval_max));
    return;
  }
  p.until_room_is_checked = 1;
  p.threads_ended.add();  // it will not be made
  throw std::system_error(
      std::make_error_code(std::errc::resource_unavailable_try_again),
      "strata::thread: " + std::to_string(alive - 1) + " threads are alive, and " +
          std::to_string(stacks.capacity()) + " stacks of " + std::to_string(stacks.stack_bytes()) +
          " bytes fit into the address space; use --strata-stack-bytes with less");
}

}  // namespace strata::detail

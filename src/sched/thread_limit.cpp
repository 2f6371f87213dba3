// SPDX-License-Identifier: Apache-2.0
// Whether there will be a stack for one more thread. A thread takes its stack when it begins, where
// a refusal could not be told to anybody; so those that are alive are counted, begun or not. Each
// worker counts for itself, and looks at all counts the more often the less room there is: together
// they cannot use more than half of what was left at the last look. Threads from outside look each
// time, and leave the workers what those may use until their next look.
#include <algorithm>
#include <new>
#include <string>
#include <system_error>

#include "sched/scheduler.hpp"
#include "strata/detail/thread_block.hpp"

namespace strata::detail {

std::uint64_t scheduler::threads_alive() const noexcept {
  // Ended first: one that is made and ends in between counts as alive.
  std::uint64_t ended = 0;
  for (const auto& p : places_) ended += p->threads_ended.read();
  std::uint64_t made = made_outside_.load(std::memory_order_seq_cst);  // see has_room()
  for (const auto& p : places_) made += p->threads_made.read();
  return made > ended ? made - ended : 0;
}

std::size_t scheduler::threads_max() const noexcept {
  // For roots, stolen branches, forks at the end of a stack, and what workers keep at hand. Half at
  // most: however many workers there are, few stacks are for threads too, and who has begun what is
  // no thread's waits for one to come back (stack_shortage.cpp).
  const std::size_t others = std::min(16 * places_.size(), stacks.capacity() / 2);
  return stacks.capacity() - others;
}

bool scheduler::has_room(place& p) noexcept {
  const std::size_t most = threads_max();
  const auto interval_of = [this](std::size_t left) {
    constexpr std::size_t interval_max = 1024;
    return static_cast<unsigned>(
        std::clamp<std::size_t>(left / (2 * places_.size()), 1, interval_max));
  };
  // The most that this look can end with is promised before it begins. Seq_cst, and the load of
  // made_outside_ after it: either we see who comes from outside, or it sees this.
  p.until_room_is_checked.store(interval_of(most), std::memory_order_seq_cst);
  const std::uint64_t alive = threads_alive();
  const std::size_t left = alive < most ? most - static_cast<std::size_t>(alive) : 0;
  p.until_room_is_checked.store(interval_of(left), std::memory_order_relaxed);
  if (alive <= most) return true;
  p.threads_ended.add();  // it will not be made
  return false;
}

bool scheduler::try_room_from_outside() noexcept {
  made_outside_.fetch_add(1, std::memory_order_seq_cst);  // partner: has_room()
  std::uint64_t promised = 0;
  for (const auto& p : places_)
    promised += std::max(p->until_room_is_checked.load(std::memory_order_seq_cst), 1U) - 1;
  if (threads_alive() + promised <= threads_max()) return true;
  give_up_room_from_outside();
  return false;
}

void scheduler::give_up_room_from_outside() noexcept {
  made_outside_.fetch_sub(1, std::memory_order_relaxed);
}

void scheduler::look_for_room(place& p) {
  if (has_room(p)) return;
  try {
    refuse_for_room();
  } catch (const std::bad_alloc&) {
    refuse_for_memory();  // not even for the words
  }
}

void scheduler::refuse_for_room() const {
  throw std::system_error(
      std::make_error_code(std::errc::resource_unavailable_try_again),
      "strata::thread: " + std::to_string(threads_alive()) + " threads are alive, and " +
          std::to_string(stacks.capacity()) + " stacks of " + std::to_string(stacks.stack_bytes()) +
          " bytes fit into the address space; use --strata-stack-bytes with less");
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "sched/thread_limit.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>

#include "strata/detail/thread_block.hpp"

namespace strata::detail {

std::uint64_t thread_limit::count_alive() const noexcept {
  // Ended first: one that is made and ends in between counts as alive.
  std::uint64_t ended = 0;
  for (const auto& p : places_) ended += p->threads_ended.read();
  std::uint64_t made = made_outside_.load(std::memory_order_seq_cst);  // see has_room()
  for (const auto& p : places_) made += p->threads_made.read();
  return made > ended ? made - ended : 0;
}

std::size_t thread_limit::limit() const noexcept {
  // For roots, stolen branches, forks at the end of a stack, and what workers keep at hand. Half at
  // most: however many workers there are, few stacks are for threads too, and who has begun what is
  // no thread's waits for one to come back (stack_shortage.cpp).
  const std::size_t others = std::min(16 * places_.size(), stacks_.capacity() / 2);
  return stacks_.capacity() - others;
}

bool thread_limit::has_room(place& p) noexcept {
  const std::size_t most = limit();
  const auto interval_of = [this](std::size_t left) {
    constexpr std::size_t interval_max = 1024;
    return static_cast<unsigned>(
        std::clamp<std::size_t>(left / (2 * places_.size()), 1, interval_max));
  };
  // The most that this look can end with is promised before it begins. Seq_cst, and the load of
  // made_outside_ after it: either we see who comes from outside, or it sees this.
  p.until_room_is_checked.store(interval_of(most), std::memory_order_seq_cst);
  const std::uint64_t alive = count_alive();
  const std::size_t left = alive < most ? most - static_cast<std::size_t>(alive) : 0;
  p.until_room_is_checked.store(interval_of(left), std::memory_order_relaxed);
  if (alive <= most) return true;
  p.threads_ended.add();  // it will not be made
  return false;
}

bool thread_limit::try_count_from_outside() noexcept {
  made_outside_.fetch_add(1, std::memory_order_seq_cst);  // partner: has_room()
  std::uint64_t promised = 0;
  for (const auto& p : places_)
    promised += std::max(p->until_room_is_checked.load(std::memory_order_seq_cst), 1U) - 1;
  if (count_alive() + promised <= limit()) return true;
  discount_from_outside();
  return false;
}

void thread_limit::discount_from_outside() noexcept {
  made_outside_.fetch_sub(1, std::memory_order_relaxed);
}

void thread_limit::look(place& p) {
  if (has_room(p)) return;
  try {
    refuse();
  } catch (const std::bad_alloc&) {
    refuse_for_memory();  // not even for the words
  }
}

void thread_limit::refuse() const {
  throw std::system_error(
      std::make_error_code(std::errc::resource_unavailable_try_again),
      "strata::thread: " + std::to_string(count_alive()) + " threads are alive, and " +
          std::to_string(stacks_.capacity()) + " stacks of " +
          std::to_string(stacks_.stack_bytes()) +
          " bytes fit into the address space; use --strata-stack-bytes with less");
}

}  // namespace strata::detail

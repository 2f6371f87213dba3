// SPDX-License-Identifier: Apache-2.0
#include "messages/followed_stops.hpp"

#include <mutex>
#include <utility>

#include "strata/detail/worker.hpp"

namespace strata::messages {

std::shared_ptr<followed_stop> followed_stops::of(std::uint64_t number) {
  if (std::shared_ptr<followed_stop> known = find(number)) return known;
  auto made = std::make_shared<followed_stop>();
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  return stops_.try_emplace(number, std::move(made)).first->second;
}

std::shared_ptr<followed_stop> followed_stops::find(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  const auto found = stops_.find(number);
  return found == stops_.end() ? nullptr : found->second;
}

void followed_stops::forget(std::uint64_t number) noexcept {
  std::shared_ptr<followed_stop> last;  // ends without the lock
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  const auto found = stops_.find(number);
  if (found == stops_.end()) return;
  last = std::move(found->second);
  stops_.erase(found);
}

std::size_t followed_stops::size() noexcept {
  const strata::detail::uninterrupted guard;
  const std::lock_guard lock(lock_);
  return stops_.size();
}

}  // namespace strata::messages

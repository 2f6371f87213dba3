// SPDX-License-Identifier: Apache-2.0
#include "net/udp/interval_set.hpp"

#include <algorithm>
#include <iterator>

namespace strata::net::udp {

void interval_set::add(std::uint64_t from, std::uint64_t to) {
  if (from >= to) return;
  if (!intervals_.empty() && std::prev(intervals_.end())->second == from) {  // nearly always
    std::prev(intervals_.end())->second = to;
    return;
  }
  auto next = intervals_.upper_bound(from);
  if (next != intervals_.begin() && std::prev(next)->second >= from) {
    --next;
    from = next->first;
  }
  while (next != intervals_.end() && next->first <= to) {
    to = std::max(to, next->second);
    next = intervals_.erase(next);
  }
  intervals_.emplace_hint(next, from, to);
}

void interval_set::remove_below(std::uint64_t limit) {
  while (!intervals_.empty() && intervals_.begin()->first < limit) {
    const std::uint64_t to = intervals_.begin()->second;
    intervals_.erase(intervals_.begin());
    if (to > limit) intervals_.emplace_hint(intervals_.begin(), limit, to);
  }
}

bool interval_set::contains(std::uint64_t number) const {
  const auto next = intervals_.upper_bound(number);
  return next != intervals_.begin() && std::prev(next)->second > number;
}

}  // namespace strata::net::udp

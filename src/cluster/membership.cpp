// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership.hpp"

#include <algorithm>

namespace strata::cluster {

membership::membership(node_id self, node_id capacity, node_id begun,
                       const std::vector<node_id>& left, const std::vector<node_id>& near)
    : self_(self),
      standings_(std::make_unique<std::atomic<standing>[]>(capacity)),
      begun_(begun),
      founders_(begun),
      near_(capacity) {
  for (unsigned n = 0; n < begun; ++n) standings_[n] = standing::present;
  for (const node_id n : left) standings_[n] = standing::left;
  for (const node_id n : near) {
    if (of(n) != standing::left) near_[nears_++] = n;
  }
}

std::vector<node_id> membership::all() const {
  std::vector<node_id> members;
  for (unsigned n = 0; n < begun(); ++n) {
    if (has(static_cast<node_id>(n))) members.push_back(static_cast<node_id>(n));
  }
  return members;
}

std::vector<node_id> membership::working() const {
  std::vector<node_id> members;
  for (unsigned n = 0; n < begun(); ++n) {
    if (n == self_ || works(static_cast<node_id>(n))) members.push_back(static_cast<node_id>(n));
  }
  return members;
}

void membership::expect(node_id n, bool here) {
  if (here) {
    near_[nears_.load(std::memory_order_relaxed)] = n;
    nears_.fetch_add(1, std::memory_order_release);
  }
  set(n, standing::coming);
}

void membership::set(node_id n, standing s) noexcept {
  standings_[n].store(s, std::memory_order_release);
  if (s == standing::present && n >= begun_.load(std::memory_order_relaxed))
    begun_.store(n + 1U, std::memory_order_release);
}

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/words/membership.hpp"

namespace strata::cluster {

membership::membership(node_id self, numbers n, const std::vector<node_id>& left,
                       const std::vector<node_id>& near)
    : self_(self),
      standings_(std::make_unique<std::atomic<standing>[]>(n.capacity)),
      founders_(n.founders),
      begun_(n.begun),
      near_(n.capacity) {
  for (unsigned i = 0; i < n.begun; ++i) standings_[i] = standing::present;
  for (const node_id gone : left) standings_[gone] = standing::left;
  if (self >= n.founders) standings_[self] = standing::coming;
  for (const node_id there : near) {
    if (of(there) != standing::left) near_[nears_++] = there;
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

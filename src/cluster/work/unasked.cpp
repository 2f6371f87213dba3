// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/unasked.hpp"

namespace strata::cluster {
namespace {

// To one node, and to anybody, no more often than that. By strata-predict, 2 us apart: twice as
// often to one, two nodes reach 1.93 of nqueens 11 and not 1.81, for 1.6 times as many tokens; half
// as often to anybody, 64 nodes reach 15 of uts T3 and not 27.
constexpr std::int64_t one_every_ns = 10'000;
constexpr std::int64_t anybody_every_ns = 2'000;
// For so long after work of theirs came from there.
constexpr std::int64_t has_enough_for_ns = 100'000;
// Nodes that are looked at: when all have enough that is what is mostly found.
constexpr int tries = 2;

}  // namespace

void unasked::heard_of(node_id node, std::uint32_t load, std::int64_t now_ns) {
  if (load != 0) not_before_ns_[node] = now_ns + has_enough_for_ns;
}

std::optional<node_id> unasked::next(std::int64_t now_ns) {
  if (now_ns < next_ns_) return std::nullopt;
  next_ns_ = now_ns + anybody_every_ns;
  const node_id self = members_.self();
  const unsigned n = members_.begun();
  for (int i = 0; i < tries && n > 1; ++i) {
    const auto other = static_cast<node_id>(random_.below(n - 1));
    const auto node = static_cast<node_id>(other >= self ? other + 1 : other);
    if (!members_.works(node) || now_ns < not_before_ns_[node]) continue;
    not_before_ns_[node] = now_ns + one_every_ns;
    return node;
  }
  return std::nullopt;
}

}  // namespace strata::cluster

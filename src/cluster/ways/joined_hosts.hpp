// SPDX-License-Identifier: Apache-2.0
// Which hosts each of a job's networks joins, where that was tried out.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

namespace strata::cluster {

class joined_hosts {
 public:
  // One that was tried: no network joins it to another such one unless join() says so.
  void add(std::uint16_t host) { tried_.insert(host); }
  void join(std::uint16_t a, std::uint16_t b, std::uint16_t network) {
    joined_.insert(key(a, b, network));
  }
  // Hosts that come later were not tried: what they are on joins them.
  [[nodiscard]] bool are_joined(std::uint16_t a, std::uint16_t b, std::uint16_t network) const {
    return a == b || !tried_.contains(a) || !tried_.contains(b) ||
           joined_.contains(key(a, b, network));
  }

 private:
  using pair_on_network = std::tuple<std::uint16_t, std::uint16_t, std::uint16_t>;
  static pair_on_network key(std::uint16_t a, std::uint16_t b, std::uint16_t network) {
    const auto [lower, higher] = std::minmax(a, b);
    return {lower, higher, network};
  }

  std::set<std::uint16_t> tried_;
  std::set<pair_on_network> joined_;
};

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// What nodes have found of the networks between them when their job began.
#pragma once
#include <compare>
#include <cstdint>

#include "launch/address.hpp"

namespace strata::launch {

// What a node has found of a network that it shares with a node on another host. Numbers travel as
// steps: 2^(step/2), in ns and in bytes/s. So they are rounded, and no value is absurd.
struct measured_link {
  static constexpr std::uint8_t step_max = 80;  // 2^40: 18 minutes, 1.1 TB/s
  static constexpr std::uint8_t unknown = 255;
  static constexpr std::uint16_t networks_max = 1024;

  node_id other = 0;
  std::uint16_t network = 0;         // its place among those that the user has named
  std::uint8_t latency = 0;          // step, one way
  std::uint8_t bandwidth = unknown;  // step, or unknown

  friend bool operator==(const measured_link&, const measured_link&) = default;
};

// A network over which two nodes could not connect when the job began, because of a firewall for
// example: for them it does not exist.
struct closed_link {
  node_id lower = 0, higher = 0;
  std::uint16_t network = 0;  // as in measured_link

  friend auto operator<=>(const closed_link&, const closed_link&) = default;
};

}  // namespace strata::launch

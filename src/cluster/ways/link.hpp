// SPDX-License-Identifier: Apache-2.0
// What it costs to send over the memory or the network that two nodes share.
#pragma once
#include <cstdint>
#include <limits>

#include "base/transport_choice.hpp"

namespace strata::cluster {

struct link {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  // Of a message of typical_bytes, in ns; at least 1, so that costs fall at every hop.
  std::int64_t cost_ns;
  // As measured: one way, and what a stream gets. Nobody measures memory, which counts as (0,
  // unlimited); of a network that was not measured bytes_per_s is 0, and latency_ns nominal or 0.
  std::int64_t latency_ns;
  std::int64_t bytes_per_s;

  // Not explicit: of most links no more than the cost is known.
  link(std::int64_t cost, std::int64_t latency = 0, std::int64_t per_s = 0) noexcept
      : cost_ns(cost), latency_ns(latency), bytes_per_s(per_s) {}
};

// Most of what nodes say is short (a signal, a steal: latency alone counts), most of what weighs
// travels in messages of 64 KiB. In one of 4 KiB both have a say: on a usual network of 1 GB/s it
// takes 4 us to be carried, and some tens to arrive.
inline constexpr std::int64_t typical_bytes = 4096;

// What counts where nothing was measured: what matters is which of two is better.
struct nominal_link {
  std::int64_t latency_ns;
  std::int64_t bytes_per_s;

  [[nodiscard]] constexpr std::int64_t cost_ns() const noexcept {
    return latency_ns + typical_bytes * 1'000'000'000 / bytes_per_s;
  }
};
inline constexpr nominal_link nominal_memory{500, 8'192'000'000};
inline constexpr nominal_link nominal_loopback{5'000, 2'500'000'000};  // a network within a host
inline constexpr nominal_link nominal_network{10'000, 1'250'000'000};

// A network that was named, by its kind; of the bandwidth its interfaces mostly know more.
// Datagrams are acknowledged, tagged and copied once more by the nodes themselves. Who says UCX has
// a network that deserves it.
[[nodiscard]] constexpr nominal_link nominal_of(network_kind k) noexcept {
  switch (k) {
    case network_kind::ucx:
      return {2'000, 12'500'000'000};
    case network_kind::udp:
      return {12'000, nominal_network.bytes_per_s};
    case network_kind::tcp:
    case network_kind::none:
      break;
  }
  return nominal_network;
}

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// Where a node of a job of several hosts listens, when nobody else has decided.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/transport_choice.hpp"

namespace strata::launch {

struct network_address {
  std::string interface;
  std::string numeric;
  bool loopback = false;
  std::uint32_t megabits = 0;  // a second; 0: the system does not say
};

// Those of this host's interfaces that are up, in the system's order.
std::vector<network_address> own_addresses();

// The one of `all` that the user's words mean: an address, a network ("10.1.0.0/16") or an
// interface. Throws user_error when there is none.
std::string chosen_address(const std::vector<network_address>& all, const std::string& words);

// The first of `all` within a network ("10.1.0.0/16"). Throws user_error when that is none.
std::optional<network_address> address_within(const std::vector<network_address>& all,
                                              const std::string& network);

// One that the user has named, and by what nodes talk on it.
struct named_network {
  std::string range;  // "10.1.0.0/16"
  network_kind kind = network_kind::tcp;
  std::string words{};  // as the user has written it: "ucx:10.1.0.0/16"
};

// The networks of a list ("10.1.0.0/16,udp:10.2.0.0/16"). Of which no kind is said is of the usual
// one, or TCP where that is none. Throws user_error when one is no network.
std::vector<named_network> networks_in(const std::string& list, network_kind usual);
// Whether one of them is reached by this.
[[nodiscard]] bool has_kind(const std::vector<named_network>& networks, network_kind kind) noexcept;

// Where the nodes of other hosts reach this one if nobody says more: what the host's own name
// stands for (`by_name`, several or none) if it is one of ours, else our first address; never a
// loopback address. Throws user_error when there is none.
std::string reachable_address(const std::vector<network_address>& all,
                              const std::vector<std::string>& by_name);

// The two of them, for this host. `words` may be empty.
std::string listening_address(const std::string& words, bool one_host);

}  // namespace strata::launch

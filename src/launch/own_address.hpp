// SPDX-License-Identifier: Apache-2.0
// Where a node of a job of several hosts listens, when nobody else has decided.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/networks.hpp"

namespace strata::launch {

using strata::has_kind;
using strata::named_network;
using strata::networks_in;

struct network_address {
  std::string interface;
  std::string numeric;
  bool loopback = false;
  std::uint32_t megabits = 0;  // a second; 0: the system does not say
  unsigned prefix = 0;         // bits of it that are the network's
  bool running = false;        // there is something at the other end, as far as the system knows
};

// Those of this host's interfaces that are up, in the system's order.
std::vector<network_address> own_addresses();

// The one of `all` that the user's words mean: an address, a network ("10.1.0.0/16") or an
// interface. Throws user_error when there is none.
std::string chosen_address(const std::vector<network_address>& all, const std::string& words);

// The first of `all` within a network ("10.1.0.0/16"). Throws user_error when that is none.
std::optional<network_address> address_within(const std::vector<network_address>& all,
                                              const std::string& network);

// A network that somebody else may be on, too.
struct own_network {
  std::string range;  // "10.1.0.0/16"
  network_address mine;
};
// Those of `all`, in their order, each once: of interfaces that run, without loopback ones, without
// addresses that interfaces give themselves (169.254.0.0/16), and without networks of one address.
std::vector<own_network> networks_of(const std::vector<network_address>& all);

// Where the nodes of other hosts reach this one if nobody says more: what the host's own name
// stands for (`by_name`, several or none) if it is one of ours, else our first address; never a
// loopback address. Throws user_error when there is none.
std::string reachable_address(const std::vector<network_address>& all,
                              const std::vector<std::string>& by_name);

// The two of them, for this host. `words` may be empty.
std::string listening_address(const std::string& words, bool one_host);

}  // namespace strata::launch

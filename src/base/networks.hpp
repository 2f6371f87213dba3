// SPDX-License-Identifier: Apache-2.0
// Networks as a user names them: "10.1.0.0/16,ucx:fd00:1::/32".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/transport_choice.hpp"

namespace strata {

// The bits of a numeric address of either kind.
std::optional<std::vector<std::uint8_t>> bits_of(const std::string& numeric);

struct network_prefix {
  std::vector<std::uint8_t> bits;
  unsigned count = 0;  // that belong to it
};
// "10.1.0.0/16". Throws user_error, whose message continues a sentence, when it is none.
network_prefix prefix_of(const std::string& range);
// The network of an address whose first `count` bits are the network's. Throws user_error when
// there is none such.
std::string range_of(const std::string& numeric, unsigned count);
// That of one address, all of whose bits count.
std::string range_of(const std::string& numeric);

// One that the user has named, and by what nodes talk on it.
struct named_network {
  std::string range;  // "10.1.0.0/16"; empty, where nodes have found it: the hosts' own addresses
  network_kind kind = network_kind::tcp;
  std::string words{};  // as the user has written it: "ucx:10.1.0.0/16"
};

// In place of a list: those that the nodes of a job find by themselves.
inline constexpr const char* networks_to_find = "auto";

// The networks of a list; none of networks_to_find. Of which no kind is said is of the usual one,
// or TCP where that is none. Throws user_error, as prefix_of() does, when one is no network.
std::vector<named_network> networks_in(const std::string& list, network_kind usual);
// Whether one of them is reached by this.
[[nodiscard]] bool has_kind(const std::vector<named_network>& networks, network_kind kind) noexcept;

}  // namespace strata

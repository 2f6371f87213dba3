// SPDX-License-Identifier: Apache-2.0
// What every message between nodes begins with, on every transport.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace strata::net {

using node_id = std::uint16_t;

// Changes with every change of what follows or of a message's layout; compared when a node joins.
inline constexpr std::uint32_t wire_version = 15;

// What a message is; the numbers are given out in cluster/words/kinds.hpp.
using message_kind = std::uint16_t;

struct header {
  std::uint32_t length;  // bytes of payload that follow
  message_kind kind;
  node_id source;       // of this hop; what is forwarded says more in its payload
  node_id destination;  // of this hop
  std::uint16_t unused;
  std::uint32_t sequence;  // counts the messages from source to destination
};
static_assert(sizeof(header) == 16 && std::is_trivially_copyable_v<header>);
static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// Larger ones are cut up above the transports. 64 KiB, and what says what they are.
inline constexpr std::size_t payload_bytes_max = (std::size_t{64} << 10) + 1024;

}  // namespace strata::net

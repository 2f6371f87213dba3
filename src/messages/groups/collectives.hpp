// SPDX-License-Identifier: Apache-2.0
// How the operations of a group go, on bytes. Each is called within member::perform(), by every
// member with sizes that fit; what they do and cost is said in strata/group.hpp.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "messages/groups/member.hpp"

namespace strata::messages {

// From here on a broadcast is dealt out and exchanged, a reduction is cut.
inline constexpr std::size_t broadcast_cut_bytes = std::size_t{64} << 10;
inline constexpr std::size_t all_reduce_cut_bytes = std::size_t{16} << 10;
// Blocks up to here travel together.
inline constexpr std::size_t all_to_all_packed_bytes_max = 256;

using byte_view = std::span<const std::byte>;
using byte_room = std::span<std::byte>;
using byte_string = std::vector<std::byte>;

void broadcast(member& me, byte_room values, unsigned root);
void reduce(member& me, byte_view values, byte_room result, unsigned root,
            const strata::detail::combination& op);
void all_reduce(member& me, byte_room values, const strata::detail::combination& op);
void reduce_scatter(member& me, byte_view all, byte_room values,
                    const strata::detail::combination& op);
void scan(member& me, byte_room values, const strata::detail::combination& op);
void exclusive_scan(member& me, byte_view values, byte_room result,
                    const strata::detail::combination& op);
void gather(member& me, byte_view values, byte_room all, unsigned root);
std::vector<byte_string> gather_any(member& me, byte_view values, unsigned root);
void all_gather(member& me, byte_view values, byte_room all);
std::vector<byte_string> all_gather_any(member& me, byte_view values);
void scatter(member& me, byte_view all, byte_room values, unsigned root);
byte_string scatter_any(member& me, std::span<const byte_view> parts, unsigned root);
void all_to_all(member& me, byte_view out, byte_room in);
std::vector<byte_string> all_to_all_any(member& me, std::span<const byte_view> parts);

}  // namespace strata::messages

// SPDX-License-Identifier: Apache-2.0
// A token as bytes: its code's identity and its arguments, of which a call's begin with where it
// waits (strata/call.hpp). Those of objects lie behind what its type packs.
#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "cluster/words/codec.hpp"
#include "cluster/words/kinds.hpp"
#include "strata/detail/remote.hpp"
#include "strata/global_ptr.hpp"

namespace strata::cluster {

// Without what lies behind.
[[nodiscard]] std::size_t packed_bytes(const detail::task& token) noexcept;
void pack_token(std::byte* out, const detail::task& token, node_id here);
// With that.
void pack_token(writer& out, const detail::task& token, node_id here);

// These throw malformed.
// A call's home may be anywhere: see split_phase::unpack().
detail::task* unpack_token(detail::worker& w, reader& in);
// One that is all of its message: its type may take what is behind its arguments.
detail::task* unpack_whole(detail::worker& w, reader in);
[[nodiscard]] reader skip_token(reader in);
// Of a call; none: nobody waits for a token.
[[nodiscard]] std::optional<detail::global_address> home_of_packed(reader in);
// One of w's node that nobody gets.
void give_up_packed(detail::worker& w, reader in);
// Whether somebody waits for its result.
[[nodiscard]] bool is_call_packed(std::span<const std::byte> token);

}  // namespace strata::cluster

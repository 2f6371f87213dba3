// SPDX-License-Identifier: Apache-2.0
// An exception as bytes that mean something on another node: how many nodes it has left, how many
// of them follow, these, the name of its type, and its message, both behind their sizes. What
// leaves a call (split_phase.cpp) and what makes a computation fail (failures.cpp) travel like
// this.
#pragma once
#include <cstddef>
#include <exception>

#include "cluster/words/codec.hpp"
#include "net/wire.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

// What is longer is cut, so that an exception fits into a message.
inline constexpr std::size_t thrown_type_bytes_max = 500;
inline constexpr std::size_t thrown_words_bytes_max = 4000;

// Appends the exception that leaves node `self`: one of this node, or one that came here from
// another and has one node more behind it now.
void pack_thrown(writer& out, const std::exception_ptr& error, net::node_id self);

// The rest of a message, in a job whose nodes have numbers below `nodes`. Throws malformed.
[[nodiscard]] remote_error unpack_thrown(reader& in, net::node_id nodes);

}  // namespace strata::cluster

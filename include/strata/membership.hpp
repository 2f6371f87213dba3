// SPDX-License-Identifier: Apache-2.0
// Which nodes there are, where they come and go while the job runs (`strata run --elastic`,
// `strata join`, `strata leave`).
//
//   strata::on_every_node([] { work(); });   // strata/remote_thread.hpp: on all of them, and waits
//   const std::size_t nodes = strata::members().size();
//
// A node that comes takes part by itself: it asks for tokens, and whoever asks again sees it. One
// that leaves gets no more of them, finishes or hands over what it has, and goes when none of its
// frames, suspended threads and endpoints is left. Numbers are never given out again.
#pragma once
#include <vector>

#include "strata/global_ptr.hpp"

namespace strata {

/// Whether `node` takes part in the job now: it has come, and is not about to leave. What is sent
/// to a node that has left throws node_lost_error. False for numbers that no node has had, and
/// outside a runtime for all but 0. Never blocks.
[[nodiscard]] bool is_member(node_id_t node) noexcept;

/// The nodes for which is_member() holds, by number: the calling one among them, even if it is
/// about to leave. {0} outside a runtime.
[[nodiscard]] std::vector<node_id_t> members();

}  // namespace strata

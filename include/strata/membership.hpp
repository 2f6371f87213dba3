// SPDX-License-Identifier: Apache-2.0
// Which nodes there are, where they come and go while the job runs (`strata run --elastic`,
// `strata join`, `strata leave`).
//
//   strata::on_every_node([] { work(); });   // strata/remote_thread.hpp: on all of them, and waits
//   const std::size_t nodes = strata::members().size();
//
// A node that comes takes part by itself: it asks for tokens, and whoever asks again sees it. One
// that leaves gets no more of them, finishes or hands over what it has, and goes when none of its
// frames, suspended threads and endpoints is left: a thread that serves others has to end by itself
// once is_leaving(). Numbers are never given out again.
//
// What needs a node that has left throws node_left_error: calls, threads there, and receives that
// only it could answer. A message to one of its endpoints throws endpoint_closed_error.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strata/detail/deadline.hpp"
#include "strata/global_ptr.hpp"

namespace strata {

namespace detail {
// Nothing: the deadline came first.
std::optional<std::vector<node_id_t>> await_other_members(std::span<const node_id_t> known,
                                                          std::int64_t deadline_ns);
}  // namespace detail

/// Whether `node` takes part in the job now: it has come, and is not about to leave. False for
/// numbers that no node has had, and outside a runtime for all but 0. Never blocks.
[[nodiscard]] bool is_member(node_id_t node) noexcept;

/// Whether the calling node is about to leave the job (`strata leave`): it is no member any more,
/// and goes as soon as nothing holds it. False outside a runtime. Never blocks.
[[nodiscard]] bool is_leaving() noexcept;

/// The nodes for which is_member() holds, by number: the calling one among them, even if it is
/// about to leave. {0} outside a runtime. What this node knows now: in an elastic job others may
/// have heard of a change earlier or later, and a node may leave before it is called
/// (node_left_error). Any thread; never blocks. Throws std::bad_alloc.
[[nodiscard]] std::vector<node_id_t> members();

/// Suspends until members() is not `known`, which it was when the caller asked last, and returns
/// it; also, with whatever it is then, as soon as the calling node is about to leave. Without
/// `--elastic` nothing of that ever happens. Who comes and goes again meanwhile may be missed.
/// Throws misuse_error outside a runtime and in a fiber, node_lost_error.
///
///   for (auto there = strata::members(); !strata::is_leaving();
///        there = strata::await_members_other_than(there))
///     deal_out(there);
[[nodiscard]] std::vector<node_id_t> await_members_other_than(std::span<const node_id_t> known);
/// The same for that long at most: nothing when the time is over first.
template <class Rep, class Period>
[[nodiscard]] std::optional<std::vector<node_id_t>> await_members_other_than_for(
    std::span<const node_id_t> known, const std::chrono::duration<Rep, Period>& time) {
  return detail::await_other_members(known, detail::deadline_after(time));
}

}  // namespace strata

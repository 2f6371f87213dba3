// SPDX-License-Identifier: Apache-2.0
// A stop for the whole job: whoever has found it, on whichever node, tells all others.
//
//   long search(part p, strata::stop_handle stop) {           // on any node
//     const strata::stop_token found = stop.token();          // of that node
//     for (; !found.stop_requested() && !p.empty(); p.next())
//       if (fits(p)) stop.request();                          // everywhere
//   }
//
//   strata::shared_stop stop;                                 // on one node
//   scope.spawn(strata::call<search>(p, stop.handle()));      // may run on another one
//
// A handle is a value that travels: in the arguments of calls and tokens, in messages, and under a
// name (`publish("found", stop.handle())`). A node asks the one that has made the stop once, when a
// handle is used there for the first time; asking its token whether a stop has been requested costs
// a load from then on, wherever the token goes on that node. No node's workers are needed for that,
// whatever they compute (but with polling reception a node hears when one of them looks).
// Callbacks, and the std::stop_token of such a token, are told by a worker of their node when one
// has time.
#pragma once
#include <cstdint>
#include <memory>

#include "strata/global_ptr.hpp"
#include "strata/resource.hpp"
#include "strata/stop_token.hpp"

namespace strata {

namespace detail {

class shared_stop_state;  // on the node that has made it

}  // namespace detail

/// A reference to a shared_stop on some node.
class stop_handle {
 public:
  /// To none: its token is one on which no stop can be requested.
  constexpr stop_handle() noexcept = default;

  /// Where the shared_stop is. Never blocks.
  [[nodiscard]] node_id_t node() const noexcept { return where_.node(); }
  /// This node's token. Where the shared_stop is on another node, the first time on this one
  /// suspends until that has answered; otherwise never blocks, and may be used in a fiber. Throws
  /// resource_ended_error if the shared_stop has ended, node_lost_error, node_left_error if its
  /// node has left, std::bad_alloc, misuse_error outside a runtime and, where the other node has to
  /// be asked, in a fiber.
  [[nodiscard]] stop_token token() const;
  /// Requests a stop on every node of the job. Returns when those that have a token have been told,
  /// and their callbacks have been called there, in a thread of that node; what the requesting
  /// thread did before is visible to whoever sees the stop. True for the first request only; a
  /// later one returns at once, although the first may still be telling. Nodes that take a handle
  /// later, or come to the job later, find the stop requested. Suspends: for a call to the
  /// shared_stop's node, and for those of that node to all others at once. Throws as token(), and
  /// misuse_error for a handle to none and, where another node has to be told, in a fiber; after
  /// std::bad_alloc (a remote_error, if the shared_stop's node had no memory) and node_lost_error
  /// some nodes may not have been told. After want of memory the next request is the first again.
  bool request() const;

 private:
  friend class shared_stop;
  stop_handle(global_ptr<detail::shared_stop_state> where, std::uint64_t number) noexcept
      : where_(where), number_(number) {}

  global_ptr<detail::shared_stop_state> where_;
  std::uint64_t number_ = 0;  // which no other one of the job has
};

/// A stop source whose tokens are on all nodes. It belongs to the node that makes it, and lives
/// until nobody uses handles to it any more: longer than the calls that have got one.
class shared_stop {
 public:
  /// Throws std::bad_alloc, and misuse_error outside a runtime.
  shared_stop();
  /// Waits for requests that are in progress; the other nodes hear of its end later. In a fiber,
  /// which cannot wait, and where a node is lost, the stop's memory stays as long as the process if
  /// somebody uses it just then. Requests nothing. Tokens outlive it; no stop is requested on them
  /// any more. Never throws.
  ~shared_stop();
  shared_stop(const shared_stop&) = delete;
  shared_stop& operator=(const shared_stop&) = delete;

  /// Never blocks.
  [[nodiscard]] stop_handle handle() const noexcept { return handle_; }
  /// That of its own node. Never blocks.
  [[nodiscard]] stop_token token() const noexcept;
  /// As stop_handle's.
  bool request();

 private:
  std::unique_ptr<detail::shared_stop_state> state_;
  detail::object_entry entry_;
  stop_handle handle_;
};

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// Connects every node of a job with every other, over TCP: node i connects to all j < i and accepts
// all j > i, all at once.
//
// Strangers may connect meanwhile, in any number, say anything, half of it, or nothing: they are
// dropped, at the latest after stranger_limit_ns, and nobody waits for them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "net/tcp/handshake.hpp"
#include "net/tcp/mesh_ground.hpp"
#include "net/tcp/socket.hpp"

namespace strata::launch {
struct job_description;
}

namespace strata::net::tcp {

struct mesh_options {
  std::size_t socket_buffer_bytes = 0;  // see options
  std::int64_t stranger_limit_ns = 2'000'000'000;
  // Connections that have not proved anything yet; one more pushes out the oldest. A node that
  // loses its place that way tries again.
  std::size_t strangers_max = 256;
  // Readable: nobody waits for the connections any more. -1: never.
  int cancelled = -1;
  // Readable: on_news() has something to do, which may throw what ends the call. -1: never. It is
  // called at the beginning too.
  int news = -1;
  std::function<void()> on_news = {};
  // Who cannot be reached, or has not come when the deadline has passed, is left out, and why
  // (empty if it was not heard of). Not where this node has no descriptor for them.
  bool partial = false;
  std::function<void(node_id n, const std::string& why)> on_left_out = {};
  // Told of everybody who is refused: where from, why ("does not know this job's key").
  std::function<void(const std::string& from, refusal why, const std::string& words)> on_refused;
  mesh_ground* ground = solid_ground();  // outlives the call
};

// What a node says of itself when it joins `job`.
identity identity_in(const launch::job_description& job, const std::string& build_id);

// The connections, by node; empty for this node and for those with port 0 in the directory (they
// are reached in another way; both sides must agree on that). Blocks until all have joined. Throws
//  - strata::error when the deadline (by the ground's clock) has passed, naming who is missing and
//    why, or when it was cancelled;
//  - what on_news() throws;
//  - strata::user_error when another node says that this one runs another build or version.
// `at` may be closed afterwards: one for each address at which others look for this node.
std::vector<os::descriptor> connect_mesh(const identity& me, std::span<const listener> at,
                                         const std::vector<launch::address>& directory,
                                         std::int64_t deadline_ns, const mesh_options& options);

}  // namespace strata::net::tcp

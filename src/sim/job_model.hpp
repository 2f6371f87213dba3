// SPDX-License-Identifier: Apache-2.0
// What a simulated job is like: its nodes, their networks, and what things cost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "cluster/work/stealing.hpp"
#include "net/reliable.hpp"
#include "net/transport.hpp"
#include "sim/simulated_transport.hpp"
#include "strata/detail/task.hpp"
#include "strata/options.hpp"

namespace strata::sim {

// What a task costs on its worker, in ns.
using cost_model = std::function<std::int64_t(const detail::task&)>;

struct job_model {
  node_id nodes = 2;  // numbers that a node can have
  node_id founders =
      0;  // those that are there from the beginning; 0: all, and nobody comes or goes
  cluster::balancing how = cluster::balancing::random;
  cost_model cost = [](const detail::task&) { return std::int64_t{20}; };
  // What handling a message costs the worker's core: sending and receiving.
  std::int64_t message_ns = 1'000;
  // So long after each other a node takes in messages; 0: as they come.
  std::int64_t receive_ns = 0;
  // Of its connections: see wires::settings.
  net::reliable_channel::settings channel{};
  std::size_t credits_bytes = wires::settings{}.credits_bytes;
  std::int64_t staged_ns = 0;
  // Which nodes share a network, and what that costs; not set: all do. No packet goes between
  // others.
  cluster::routes::link_cost links{};
  // On which host each node is, which counts where networks are measured; empty: on one of its own.
  std::vector<std::uint16_t> hosts{};
  bool spares = false;  // with `links`: each pair that shares a network shares another one
  // With `links`: so long after its end a connection is tried again first, and at most so long
  // after it was; 0: never.
  std::int64_t mends_after_ns = 0, mends_every_ns = 0;
  // As over TCP; over UDP the network may swallow that.
  bool tells_of_ends = true;
  // With `links`: what they cost is measured first, and the job begins then: job::has_begun().
  bool measures = false;
  std::int64_t measures_again_ns = 0;  // and then from time to time; 0: never
  std::int64_t lost_after_ns = 0;      // 0: nobody watches anybody
  std::int64_t stalls_after_ns = 0;    // without progress; 0: never
  // What a node says because of a message leaves at once, as where receivers do that; else when the
  // task ends that runs there.
  bool answers_while_busy = false;
  // From so many bytes on messages between neighbours are transferred.
  std::size_t transfer_bytes_min = net::transfers::never;
  // Who hears of a node's loss breaks off, as a runtime does: see simulated_node::break_off().
  bool breaks_off = false;
  std::size_t stack_bytes = options{}.stack_bytes;  // of each thread
};

}  // namespace strata::sim

// SPDX-License-Identifier: Apache-2.0
// A transport between nodes that need to know no more of each other than where they can be reached,
// and what job they are in: UDP and UCX. Who has no connection to accept lets a node in at once.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "launch/job.hpp"
#include "net/transport.hpp"

namespace strata::net {

// What such a transport knows of its job. The key is the job's secret: only its nodes have it.
struct job_part {
  node_id self = 0;
  node_id nodes = 1;  // node numbers that there may ever be
  launch::job_key key{};
  std::uint64_t job = 0;
};

class addressed_transport : public transport {
 public:
  // What the others need to reach this node.
  [[nodiscard]] virtual launch::address address() const = 0;
  // Index: node; where there is neither port nor worker there is nobody. Blocks until all have been
  // heard of, which proves that they know the key. Throws strata::error when one has not by then
  // (os::now_ns()). Before every other call.
  virtual void connect(const std::vector<launch::address>& directory, std::int64_t deadline_ns) = 0;
  // A node that was not there will connect. One call at a time, with any others. Throws
  // strata::error when that is no address.
  virtual void admit(node_id node, const launch::address& where) = 0;
};

[[nodiscard]] inline bool is_somebody(const launch::address& a) noexcept {
  return a.port != 0 || !a.worker.empty();
}

}  // namespace strata::net

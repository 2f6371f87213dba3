// SPDX-License-Identifier: Apache-2.0
// A transport between nodes that need to know no more of each other than where they can be reached,
// and what job they are in: UDP and UCX. Who has no connection to accept lets a node in at once.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "launch/address.hpp"
#include "net/renewals.hpp"
#include "net/transport.hpp"

namespace strata::net {

// What such a transport knows of its job. The key is the job's secret: only its nodes have it.
struct job_part {
  node_id self = 0;
  node_id nodes = 1;  // node numbers that there may ever be
  launch::job_key key{};
  std::uint64_t job = 0;
};

// What a node may hear of while it waits for others. Readable: look() has something to do, which
// may throw what ends the waiting. -1: never.
struct tidings {
  int readable = -1;
  std::function<void()> look = {};
};

class addressed_transport : public transport {
 public:
  // What the others need to reach this node.
  [[nodiscard]] virtual launch::address address() const = 0;
  // Index: node; where there is neither port nor worker there is nobody. Blocks until all have been
  // heard of, which proves that they know the key. Throws strata::error when one has not by then
  // (os::now_ns()), and what `meanwhile` throws. Before every other call.
  void connect(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
               const tidings& meanwhile = {}) {
    join(directory, deadline_ns, meanwhile, absence::is_an_error);
  }
  // The same, but who has not been heard of by then, or is not to be reached, is dropped.
  void connect_where_possible(const std::vector<launch::address>& directory,
                              std::int64_t deadline_ns, const tidings& meanwhile = {}) {
    join(directory, deadline_ns, meanwhile, absence::is_accepted);
  }
  // A node that was not there will connect. One call at a time, with any others. Throws
  // strata::error when that is no address.
  virtual void admit(node_id node, const launch::address& where) = 0;

  // Null: what has ended is over.
  [[nodiscard]] virtual renewals* renews() noexcept { return nullptr; }

 protected:
  enum class absence { is_an_error, is_accepted };
  virtual void join(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
                    const tidings& meanwhile, absence of_others) = 0;
};

[[nodiscard]] inline bool is_somebody(const launch::address& a) noexcept {
  return a.port != 0 || !a.worker.empty();
}

}  // namespace strata::net

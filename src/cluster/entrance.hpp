// SPDX-License-Identifier: Apache-2.0
// Where nodes that come to a running job are let in: over the memory of this host, or over TCP.
#pragma once
#include <memory>
#include <vector>

#include "cluster/reach.hpp"
#include "launch/job.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "os/descriptor.hpp"

namespace strata::cluster {

class entrance {
 public:
  // shm: null if this node has none. Both outlive the entrance.
  entrance(const launch::job_description& job, const std::string& build, reach who,
           std::vector<net::tcp::listener> doors, net::shm::shm_transport* shm,
           net::tcp::tcp_transport* tcp, net::tcp::mesh_options options);

  // How a node that comes will reach this one. With the inbox, as all that has no other note.
  enum class way { memory, connection, others };
  way expect(net::node_id node, std::uint16_t host, const launch::address& where);
  void forget(net::node_id node) { who_.forget(node); }
  [[nodiscard]] const reach& who() const noexcept { return who_; }

  // The node shares this one's memory.
  net::transport& admit_neighbour(net::node_id node);

  // Blocks until `node`, and nobody else, has connected from another host. Throws strata::error
  // after the job's start limit, and after cancel(). One call at a time, without the inbox.
  [[nodiscard]] os::descriptor await(net::node_id node);
  // Ends await() for good. Any thread.
  void cancel() noexcept;
  net::transport& admit(net::node_id node, os::descriptor connection);

 private:
  const net::tcp::identity me_;
  const std::int64_t limit_ns_;
  reach who_;
  const std::vector<net::tcp::listener> doors_;
  net::shm::shm_transport* const shm_;
  net::tcp::tcp_transport* const tcp_;
  net::tcp::mesh_options options_;
  os::descriptor cancelled_;  // an eventfd
};

}  // namespace strata::cluster

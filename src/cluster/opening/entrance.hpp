// SPDX-License-Identifier: Apache-2.0
// Where nodes that come to a running job are let in: at once over the memory of this host, UDP or
// UCX; over TCP when they have connected.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/ways/reach.hpp"
#include "launch/job.hpp"
#include "net/addressed.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "os/descriptor.hpp"

namespace strata::cluster {

class entrance {
 public:
  // By what they are let in; all of it outlives the entrance.
  struct transports {
    net::shm::shm_transport* shm = nullptr;
    net::tcp::tcp_transport* tcp = nullptr;
    std::vector<net::tcp::listener> doors{};  // of TCP
    net::tcp::mesh_options mesh{};
    // UDP and UCX, by the network's place in the user's list; null, or beyond its end: TCP. Where
    // no networks are named, the first.
    std::vector<net::addressed_transport*> addressed{};
  };
  entrance(const launch::job_description& job, const std::string& build, reach& who, transports by);

  // How a node that comes will reach this one. With the inbox, as all that has no other note.
  enum class way { memory, address, connection, others };
  way expect(net::node_id node, std::uint16_t host, const launch::address& where);
  // It has left, or will not come: nor does anybody wait for it any more.
  void forget(net::node_id node);

  // Null if the node is let in when it has connected, or by others. Throws strata::error when its
  // address is none.
  net::transport* admit_at_once(net::node_id node, way by);

  // Blocks until `node`, the last that was expected, and nobody else, has connected from another
  // host. Throws strata::error after the job's start limit, when the node is forgotten, and after
  // cancel(). One call at a time, without the inbox.
  [[nodiscard]] os::descriptor await(net::node_id node);
  // Ends await() for good. Any thread.
  void cancel() noexcept;
  net::transport& admit(net::node_id node, os::descriptor connection);

 private:
  // Null: over TCP, or not over any network of this node's.
  [[nodiscard]] net::addressed_transport* addressed_to(net::node_id node) const;
  void stop_waiting() noexcept;  // with the lock

  const net::tcp::identity me_;
  const std::int64_t limit_ns_;
  reach& who_;
  transports by_;
  const os::descriptor cancelled_;  // an eventfd
  std::mutex mutex_;                // of what follows, and of that one's readiness
  std::optional<net::node_id>
      expected_;  // none: it has been forgotten, or nobody may come any more
  bool closed_ = false;
};

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// Where nodes that come to a running job are let in: at once over the memory of this host, UDP or
// UCX; over TCP when they have connected.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cluster/reach.hpp"
#include "launch/job.hpp"
#include "net/addressed.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "os/descriptor.hpp"

namespace strata::cluster {

class entrance {
 public:
  // shm: null if this node has none. All three outlive the entrance.
  entrance(const launch::job_description& job, const std::string& build, reach& who,
           std::vector<net::tcp::listener> doors, net::shm::shm_transport* shm,
           net::tcp::tcp_transport* tcp, net::tcp::mesh_options options);
  // Of a job whose nodes all use this one, over one network or several, but where they share memory
  // by shm; null as above. All outlive the entrance.
  entrance(const launch::job_description& job, reach& who, net::shm::shm_transport* shm,
           net::addressed_transport& all);

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
  void stop_waiting() noexcept;  // with the lock

  const net::tcp::identity me_;
  const std::int64_t limit_ns_;
  reach& who_;
  const std::vector<net::tcp::listener> doors_;
  net::shm::shm_transport* const shm_;
  net::tcp::tcp_transport* const tcp_;
  net::addressed_transport* const all_ = nullptr;
  net::tcp::mesh_options options_;
  os::descriptor cancelled_;  // an eventfd
  std::mutex mutex_;          // of what follows, and of that one's readiness
  std::optional<net::node_id>
      expected_;  // none: it has been forgotten, or nobody may come any more
  bool closed_ = false;
};

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// What a node listens with: on the address that it was given, or on each of the networks that the
// user has named and it is on; and there once more for spare connections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/reach.hpp"
#include "launch/job.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/socket.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/udp/udp_transport.hpp"

namespace strata::cluster {

struct own_sockets {
  std::vector<net::tcp::listener> listeners{}, spares{};
  std::unique_ptr<net::udp::udp_transport> udp{}, udp_spare{};  // instead
  launch::address where{};                                      // as others are told
};

std::unique_ptr<net::udp::udp_transport> make_udp(const launch::job_description& job,
                                                  std::vector<std::string> bind_addresses);

// Who begins the job on several networks has spare connections.
[[nodiscard]] bool has_spares(const launch::job_description& job,
                              const std::vector<std::string>& networks);

// For TCP. No networks: on the node's own address.
own_sockets open_listeners(const launch::job_description& job,
                           const std::vector<std::string>& networks, std::size_t buffer_bytes);
// For UDP; without a transport where this node is on none of the networks.
own_sockets open_sockets(const launch::job_description& job,
                         const std::vector<std::string>& networks);

// Where two nodes share several networks, over the second best; null: nowhere. The job does without
// those that cannot be made, because of a firewall for example.
std::unique_ptr<net::transport> connect_spares(const launch::job_description& job,
                                               const std::string& build, const reach& who,
                                               own_sockets& own, net::tcp::mesh_options mesh,
                                               const net::tcp::options& o);

}  // namespace strata::cluster

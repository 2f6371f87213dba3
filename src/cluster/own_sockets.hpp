// SPDX-License-Identifier: Apache-2.0
// What a node listens with: on the address that it was given, or on each of the networks that the
// user has named and it is on; and there once more for spare connections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/reach.hpp"
#include "launch/job.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/socket.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/descriptor.hpp"

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

// What this node has connected to others with, before anything is sent.
class connected {
 public:
  using troubles = std::map<node_id, std::string>;
  connected(std::vector<os::descriptor> sockets, troubles why)
      : sockets_(std::move(sockets)), why_(std::move(why)) {}
  explicit connected(std::unique_ptr<net::udp::udp_transport> udp) : udp_(std::move(udp)) {}
  // Null over TCP: nobody has to look after that yet.
  [[nodiscard]] net::udp::udp_transport* needs_care() const noexcept { return udp_.get(); }
  [[nodiscard]] bool reaches(node_id n) const noexcept {
    return udp_ != nullptr ? udp_->reaches(n) : bool{sockets_[n]};
  }
  // Why it could not be reached, if anything is known of that.
  [[nodiscard]] std::string trouble_with(node_id n) const {
    const auto found = why_.find(n);
    return found != why_.end() ? found->second : std::string();
  }
  void drop(node_id n) noexcept;
  // One of the two, the other null; from now on that is what sends.
  std::unique_ptr<net::udp::udp_transport> udp() && { return std::move(udp_); }
  std::unique_ptr<net::tcp::tcp_transport> tcp(node_id self, const net::tcp::options& o) &&;

 private:
  std::vector<os::descriptor> sockets_{};
  troubles why_{};
  std::unique_ptr<net::udp::udp_transport> udp_{};
};

// To all those addresses, by node; port 0: nobody. `partly`: the job does without those who cannot
// be reached within a part of the time that it has to start, because of a firewall for example.
// Else throws as connect_mesh().
struct connecting {
  const net::tcp::identity& me;
  std::int64_t began_ns = 0, start_limit_ns = 0;
  net::tcp::mesh_options mesh{};
  bool partly = false;
};
enum class which { first, spare };
connected connect(own_sockets& own, which w, const std::vector<launch::address>& directory,
                  const connecting& how);

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/own_sockets.hpp"

#include <algorithm>
#include <utility>

#include "launch/own_address.hpp"
#include "os/clock.hpp"

namespace strata::cluster {
namespace {

// Of the time that a job has to start: as all nodes are there and listen, whoever cannot be reached
// within it is behind something that lets nothing through. For spare connections all are ready.
constexpr std::int64_t first_part = 5, spare_part = 10;

// Of a network that the user has named: this node's address there.
struct own_network {
  std::size_t number;  // its place in the user's list
  launch::network_address mine;
};
std::vector<own_network> own_networks(const std::vector<std::string>& networks) {
  const std::vector<launch::network_address> own = launch::own_addresses();
  std::vector<own_network> all;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (const auto mine = launch::address_within(own, networks[i])) all.push_back({i, *mine});
  }
  return all;
}

}  // namespace

std::unique_ptr<net::udp::udp_transport> make_udp(const launch::job_description& job,
                                                  std::vector<std::string> bind_addresses) {
  net::udp::settings s;
  s.bind_addresses = std::move(bind_addresses);
  s.self = job.node;
  s.nodes = job.capacity;
  s.key = job.key;
  s.job = job.job;
  return std::make_unique<net::udp::udp_transport>(s);
}

bool has_spares(const launch::job_description& job, const std::vector<std::string>& networks) {
  return networks.size() > 1 && !job.late;
}

own_sockets open_listeners(const launch::job_description& job,
                           const std::vector<std::string>& networks, std::size_t buffer_bytes) {
  own_sockets e;
  if (networks.empty()) {
    e.listeners.emplace_back(job.bind_address, 0, buffer_bytes);
    e.where = e.listeners.back().address();
    return e;
  }
  e.where.doors.resize(networks.size());
  for (const auto& [number, mine] : own_networks(networks)) {
    e.listeners.emplace_back(mine.numeric, 0, buffer_bytes);
    const launch::address there = e.listeners.back().address();
    launch::address::door& d = e.where.doors[number];
    d = {there.host, there.port, mine.megabits};
    if (!has_spares(job, networks)) continue;
    e.spares.emplace_back(mine.numeric, 0, buffer_bytes);
    d.spare_port = e.spares.back().address().port;
  }
  return e;
}

own_sockets open_sockets(const launch::job_description& job,
                         const std::vector<std::string>& networks) {
  own_sockets e;
  e.where.doors.resize(networks.size());
  const std::vector<own_network> own = own_networks(networks);
  if (own.empty()) return e;
  std::vector<std::string> hosts;
  for (const own_network& n : own) hosts.push_back(n.mine.numeric);
  e.udp = make_udp(job, hosts);
  const std::vector<launch::address> all = e.udp->addresses();
  e.where.worker = all.front().worker;
  for (std::size_t i = 0; i < own.size(); ++i)
    e.where.doors[own[i].number] = {all[i].host, all[i].port, own[i].mine.megabits};
  if (!has_spares(job, networks)) return e;
  e.udp_spare = make_udp(job, hosts);
  const std::vector<launch::address> spares = e.udp_spare->addresses();
  e.where.spare_worker = spares.front().worker;
  for (std::size_t i = 0; i < own.size(); ++i)
    e.where.doors[own[i].number].spare_port = spares[i].port;
  return e;
}

void connected::drop(node_id n) noexcept {
  if (udp_ != nullptr) return udp_->drop(n);
  sockets_[n].reset();
}

std::unique_ptr<net::tcp::tcp_transport> connected::tcp(node_id self,
                                                        const net::tcp::options& o) && {
  return std::make_unique<net::tcp::tcp_transport>(self, std::move(sockets_), o);
}

connected connect(own_sockets& own, which w, const std::vector<launch::address>& directory,
                  const connecting& how) {
  const std::int64_t deadline_ns = how.began_ns + how.start_limit_ns;
  const std::int64_t patience_ns =
      how.start_limit_ns / (w == which::first ? first_part : spare_part);
  const std::int64_t limit_ns =
      how.partly ? std::min(deadline_ns, os::now_ns() + patience_ns) : deadline_ns;
  auto& udp = w == which::first ? own.udp : own.udp_spare;
  if (udp != nullptr) {
    how.partly ? udp->connect_where_possible(directory, limit_ns)
               : udp->connect(directory, limit_ns);
    return connected(std::move(udp));
  }
  net::tcp::mesh_options mesh = how.mesh;
  mesh.partial = how.partly;
  connected::troubles why;
  mesh.on_left_out = [&](node_id n, const std::string& words) { why[n] = words; };
  auto sockets = net::tcp::connect_mesh(how.me, w == which::first ? own.listeners : own.spares,
                                        directory, limit_ns, mesh);
  return {std::move(sockets), std::move(why)};
}

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/transports.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include "launch/build_id.hpp"
#include "launch/own_address.hpp"
#include "net/addressed.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/ucx/available.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"
#if defined(STRATA_HAS_UCX)
#include "net/ucx/devices.hpp"
#include "net/ucx/ucx_transport.hpp"
#endif

namespace strata::cluster {
namespace {

using launch::transport_choice;

// All nodes have just connected to each other over their best networks.
constexpr std::int64_t spare_limit_ns = 3'000'000'000;

net::tcp::options socket_options(const options& settings) {
  using net::tcp::poll_mechanism;
  net::tcp::options o;
  o.socket_buffer_bytes = settings.socket_bytes;
  o.io = settings.socket_io == "blocking" ? net::tcp::io_mode::blocking
                                          : net::tcp::io_mode::non_blocking;
  o.mechanism = settings.socket_poll == "recv"     ? poll_mechanism::recv
                : settings.socket_poll == "epoll"  ? poll_mechanism::epoll
                : settings.socket_poll == "poll"   ? poll_mechanism::poll
                : settings.socket_poll == "select" ? poll_mechanism::select
                                                   : poll_mechanism::automatic;
  return o;
}

// ---- UDP and UCX ----

template <class Transport, class Settings>
std::unique_ptr<Transport> make_addressed(const launch::job_description& job, Settings s) {
  s.self = job.node;
  s.nodes = job.capacity;
  s.key = job.key;
  s.job = job.job;
  return std::make_unique<Transport>(s);
}

std::unique_ptr<net::udp::udp_transport> make_udp(const launch::job_description& job,
                                                  std::vector<std::string> bind_addresses) {
  net::udp::settings s;
  s.bind_addresses = std::move(bind_addresses);
  return make_addressed<net::udp::udp_transport>(job, s);
}

#if defined(STRATA_HAS_UCX)
std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description& job,
                                                   const options& settings, bool one_host) {
  net::ucx::settings s;
  s.transfers = settings.rendezvous == "always"  ? net::ucx::rendezvous::always
                : settings.rendezvous == "never" ? net::ucx::rendezvous::never
                                                 : net::ucx::rendezvous::automatic;
  // Nobody from outside has business with a job of one host. Between hosts UCX knows best.
  if (one_host) s.devices = net::ucx::device_of(job.bind_address);
  return make_addressed<net::ucx::ucx_transport>(job, s);
}
#else
std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description&, const options&,
                                                   bool) {
  throw error(net::ucx::how_to_get());
}
#endif

// ---- several networks ----

// What this node listens with on the networks that it is on, and where.
struct own_sockets {
  std::vector<net::tcp::listener> listeners{}, spares{};
  std::unique_ptr<net::udp::udp_transport> udp{}, udp_spare{};  // instead
  launch::address where{};
};
own_sockets open_listeners(const launch::job_description& job,
                           const std::vector<std::string>& networks, std::size_t buffer_bytes) {
  own_sockets e;
  if (networks.empty()) {
    e.listeners.emplace_back(job.bind_address, 0, buffer_bytes);
    e.where = e.listeners.back().address();
    return e;
  }
  const std::vector<launch::network_address> own = launch::own_addresses();
  for (const std::string& network : networks) {
    launch::address::door& d = e.where.doors.emplace_back();
    const auto mine = launch::address_within(own, network);
    if (!mine) continue;
    e.listeners.emplace_back(mine->numeric, 0, buffer_bytes);
    const launch::address there = e.listeners.back().address();
    d = {there.host, there.port, mine->megabits};
    if (networks.size() == 1 || job.late) continue;
    e.spares.emplace_back(mine->numeric, 0, buffer_bytes);
    d.spare_port = e.spares.back().address().port;
  }
  return e;
}

// The same for UDP; without a transport where this node is on none of the networks.
own_sockets open_sockets(const launch::job_description& job,
                         const std::vector<std::string>& networks) {
  const std::vector<launch::network_address> own = launch::own_addresses();
  own_sockets e;
  std::vector<std::string> hosts;
  std::vector<launch::address::door*> doors;
  e.where.doors.resize(networks.size());
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const auto mine = launch::address_within(own, networks[i]);
    if (!mine) continue;
    hosts.push_back(mine->numeric);
    doors.push_back(&e.where.doors[i]);
    doors.back()->megabits = mine->megabits;
  }
  if (hosts.empty()) return e;
  e.udp = make_udp(job, hosts);
  const std::vector<launch::address> all = e.udp->addresses();
  e.where.worker = all.front().worker;
  for (std::size_t i = 0; i < doors.size(); ++i) {
    doors[i]->host = all[i].host;
    doors[i]->port = all[i].port;
  }
  if (networks.size() == 1 || job.late) return e;
  e.udp_spare = make_udp(job, hosts);
  const std::vector<launch::address> spares = e.udp_spare->addresses();
  e.where.spare_worker = spares.front().worker;
  for (std::size_t i = 0; i < doors.size(); ++i) doors[i]->spare_port = spares[i].port;
  return e;
}

routes ways_of(const launch::job_description& job, const reach& who, const way_plan& p) {
  return p.ways(job.node, job.capacity, [&](node_id a, node_id b) { return who.cost(a, b); });
}

link_costs costs_by(const launch::job_description& job,
                    const std::vector<std::vector<launch::measured_link>>& told,
                    const way_plan& p) {
  return {with_newer(told, p.measured, job.host_of), job.host_of};
}

// By what all go when this node comes.
way_plan learn_plan(launch::control_line& line) {
  const launch::job_description& job = line.job();
  const std::string told = line.learn_plan();
  if (told.empty()) return first_plan(job.founders);
  try {
    return unpack_plan(reader(std::as_bytes(std::span(told))), job.capacity);
  } catch (const malformed& e) {
    throw error(std::string("the launcher tells of ") + e.what());
  }
}

// Where two nodes share several networks, over the second best; null: nowhere. The job does without
// those that cannot be made, because of a firewall for example.
std::unique_ptr<net::transport> connect_spares(const launch::job_description& job,
                                               const std::string& build, const reach& who,
                                               own_sockets& own, std::int64_t deadline_ns,
                                               net::tcp::mesh_options mesh,
                                               const net::tcp::options& o) {
  std::vector<launch::address> where;
  for (unsigned n = 0; n < job.capacity; ++n)
    where.push_back(who.spare_towards(job.node, static_cast<node_id>(n)));
  if (std::none_of(where.begin(), where.end(), [](const auto& a) { return a.port != 0; }))
    return nullptr;
  const std::int64_t limit_ns = std::min(deadline_ns, os::now_ns() + spare_limit_ns);
  if (own.udp_spare != nullptr) {
    own.udp_spare->connect_where_possible(where, limit_ns);
    return std::move(own.udp_spare);
  }
  mesh.partial = true;
  auto sockets =
      net::tcp::connect_mesh(net::tcp::identity_in(job, build), own.spares, where, limit_ns, mesh);
  return std::make_unique<net::tcp::tcp_transport>(job.node, std::move(sockets), o);
}

// What the nodes that begin the job measure together: their networks, and then those of the spare
// connections, if there are any.
std::vector<std::vector<launch::measured_link>> measure_all(
    launch::control_line& line, const reach& who, net::transport& over,
    const std::function<std::unique_ptr<net::transport>()>& connect_spares,
    std::unique_ptr<net::transport>& spare, std::vector<early_message>& early,
    std::vector<node_id>& lost) {
  const launch::job_description& job = line.job();
  std::vector<launch::measured_link> mine;
  std::vector<node_id> others = who.measured_by(job.node);
  surveyor by(over, job.node, job.capacity, others, {});
  // It answers while others wait in vain for theirs.
  spare = connect_spares();
  for (const survey::result& r : by.results())
    mine.push_back(r.over(*who.network(job.node, r.node)));
  std::optional<surveyor> by_spare;
  if (spare != nullptr) {
    std::erase_if(others, [&](node_id n) { return !spare->reaches(n); });
    by_spare.emplace(*spare, job.node, job.capacity, others, survey::limits{},
                     surveyor::connections::spare);
    for (const survey::result& r : by_spare->results())
      mine.push_back(r.over(*who.spare_network(job.node, r.node)));
  }
  auto told = line.share_measurements(mine);
  early = by.end();
  if (by_spare) {
    // A connection may have ended already, and have been replaced.
    const std::vector<early_message> more = by_spare->end();
    early.insert(early.end(), more.begin(), more.end());
    lost = by_spare->lost();
  }
  return told;
}

std::vector<std::optional<std::uint16_t>> networks_of(const launch::job_description& job,
                                                      const reach& who) {
  std::vector<std::optional<std::uint16_t>> all;
  for (unsigned n = 0; n < job.capacity; ++n)
    all.push_back(who.network(job.node, static_cast<node_id>(n)));
  return all;
}

}  // namespace

connections open_transports(launch::control_line& line, const options& settings) {
  const launch::job_description& job = line.job();
  const std::vector<std::string> networks = launch::networks_in(settings.networks);
  const auto has_left = [&](unsigned n) {
    return std::find(job.left.begin(), job.left.end(), n) != job.left.end();
  };
  const auto is_here = [&](unsigned n) {
    return job.host_of.at(n) == job.host_of.at(job.node) && !has_left(n);
  };
  std::vector<net::node_id> on_this_host;
  for (unsigned n = 0; n < job.nodes; ++n) {
    if (is_here(n)) on_this_host.push_back(static_cast<net::node_id>(n));
  }
  const bool several = job.nodes > 1 || job.elastic;
  const bool by_ucx = job.transport == transport_choice::ucx && several;
  const bool by_udp = job.transport == transport_choice::udp && several;
  const bool by_memory =
      (job.transport == transport_choice::automatic || job.transport == transport_choice::shm) &&
      job.shared_memory >= 0 && (on_this_host.size() > 1 || job.elastic);
  const bool by_tcp = !by_memory || on_this_host.size() < job.nodes ||
                      (job.elastic && job.transport != transport_choice::shm);
  if (by_ucx && !networks.empty())
    throw user_error("networks: UCX chooses its networks itself; see UCX_NET_DEVICES");

  connections opened{{}, {}, routes(job.node, job.capacity), {}, {}, {}, {}, nullptr, {}};
  net::shm::shm_transport* shm = nullptr;
  if (by_memory) {
    net::shm::settings s;
    s.memory = job.shared_memory;
    s.self = job.node;
    s.nodes = on_this_host;
    if (job.elastic) {
      // Whoever may come has a place.
      s.nodes.resize(job.capacity);
      std::iota(s.nodes.begin(), s.nodes.end(), net::node_id{0});
      for (const net::node_id n : s.nodes) {
        if (n >= job.nodes || !is_here(n)) s.later.push_back(n);
      }
    }
    auto made = std::make_unique<net::shm::shm_transport>(s);
    shm = made.get();
    opened.transports.push_back(std::move(made));
  }
  const std::string build = launch::build_id();
  if (by_ucx || (by_udp && networks.empty())) {
    const std::int64_t deadline = os::now_ns() + job.start_limit_ns;
    std::unique_ptr<net::addressed_transport> made;
    if (by_udp)
      made = make_udp(job, {job.bind_address});
    else
      made = make_ucx(job, settings, on_this_host.size() == job.nodes);
    made->connect(line.exchange(made->address(), build), deadline);
    opened.who = std::make_unique<reach>(job, false, false);
    if (job.elastic) opened.door = std::make_unique<entrance>(job, *opened.who, *made);
    opened.transports.push_back(std::move(made));
    return opened;
  }
  const net::tcp::options o = socket_options(settings);
  net::tcp::mesh_options mesh;
  mesh.socket_buffer_bytes = o.socket_buffer_bytes;
  opened.who = std::make_unique<reach>(job, by_memory, !networks.empty());
  reach& who = *opened.who;
  const auto learn = [&](std::vector<launch::address> directory) {
    for (unsigned n = 0; n < job.nodes; ++n) {
      if (!has_left(n)) who.set(static_cast<node_id>(n), job.host_of.at(n), directory.at(n));
    }
  };
  if (!by_tcp || !several) {
    learn(line.exchange({}, build));
    if (job.elastic)
      opened.door = std::make_unique<entrance>(job, build, who, std::vector<net::tcp::listener>{},
                                               shm, nullptr, mesh);
    return opened;
  }
  const std::int64_t deadline = os::now_ns() + job.start_limit_ns;
  own_sockets door =
      by_udp ? open_sockets(job, networks) : open_listeners(job, networks, o.socket_buffer_bytes);
  learn(line.exchange(door.where, build));
  if (!networks.empty()) {
    way_plan plan = first_plan(job.founders);
    if (networks.size() > 1 && job.late) {
      opened.told = line.share_measurements({});
      plan = learn_plan(line);
      who.set_costs(costs_by(job, opened.told, plan));
    }
    if (networks.size() > 1) opened.plan = plan;
    opened.ways = ways_of(job, who, plan);
    if (const auto out = opened.ways.unreachable(job.nodes, job.left))
      throw user_error("networks: no way leads from node " + std::to_string(job.node) +
                       " to node " + std::to_string(*out) + " over " + settings.networks +
                       ": name a network that both are on, or one that joins theirs");
  }
  if (by_udp && door.udp == nullptr)
    throw user_error("networks: this host is on none of " + settings.networks +
                     ": name one that it is on, with an address of its own");
  std::vector<launch::address> directory;
  for (unsigned n = 0; n < job.capacity; ++n)
    directory.push_back(who.towards(job.node, static_cast<node_id>(n)));
  net::udp::udp_transport* const udp = door.udp.get();
  net::tcp::tcp_transport* tcp = nullptr;
  std::unique_ptr<net::transport> over, spare;
  if (udp != nullptr) {
    udp->connect(directory, deadline);
    over = std::move(door.udp);
  } else {
    auto sockets = net::tcp::connect_mesh(net::tcp::identity_in(job, build), door.listeners,
                                          directory, deadline, mesh);
    auto made = std::make_unique<net::tcp::tcp_transport>(job.node, std::move(sockets), o);
    tcp = made.get();
    over = std::move(made);
  }
  if (networks.size() > 1 && !job.late) {
    opened.told = measure_all(
        line, who, *over, [&] { return connect_spares(job, build, who, door, deadline, mesh, o); },
        spare, opened.early, opened.lost_spares);
    const auto before = networks_of(job, who);
    who.set_costs(costs_by(job, opened.told, *opened.plan));
    const auto after = networks_of(job, who);
    for (unsigned n = 0; n < job.capacity; ++n) {
      if (before[n] != after[n]) opened.better_by_spare.push_back(static_cast<node_id>(n));
    }
    opened.ways = ways_of(job, who, *opened.plan);
  }
  if (job.elastic)
    opened.door = udp != nullptr ? std::make_unique<entrance>(job, who, *udp)
                                 : std::make_unique<entrance>(
                                       job, build, who, std::move(door.listeners), shm, tcp, mesh);
  opened.transports.push_back(std::move(over));
  if (spare != nullptr) opened.transports.push_back(std::move(spare));
  return opened;
}

}  // namespace strata::cluster

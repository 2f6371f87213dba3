// SPDX-License-Identifier: Apache-2.0
#include "cluster/transports.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/transport_choice.hpp"
#include "cluster/own_sockets.hpp"
#include "launch/build_id.hpp"
#include "launch/own_address.hpp"
#include "net/addressed.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/ucx/available.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#if defined(STRATA_HAS_UCX)
#include "net/ucx/devices.hpp"
#include "net/ucx/ucx_transport.hpp"
#endif

namespace strata::cluster {
namespace {

// In one line.
constexpr std::size_t closed_named_max = 4;

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

#if defined(STRATA_HAS_UCX)
std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description& job,
                                                   const options& settings, bool one_host) {
  net::ucx::settings s;
  s.transfers = settings.rendezvous == "always"  ? net::ucx::rendezvous::always
                : settings.rendezvous == "never" ? net::ucx::rendezvous::never
                                                 : net::ucx::rendezvous::automatic;
  // Nobody from outside has business with a job of one host. Between hosts UCX knows best.
  if (one_host) s.devices = net::ucx::device_of(job.bind_address);
  s.self = job.node;
  s.nodes = job.capacity;
  s.key = job.key;
  s.job = job.job;
  return std::make_unique<net::ucx::ucx_transport>(s);
}
#else
std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description&, const options&,
                                                   bool) {
  throw error(net::ucx::how_to_get());
}
#endif

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

class opening {
 public:
  opening(launch::control_line& line, const options& settings);
  connections all();

 private:
  [[nodiscard]] bool has_left(unsigned n) const {
    return std::find(job_.left.begin(), job_.left.end(), n) != job_.left.end();
  }
  [[nodiscard]] bool is_here(unsigned n) const {
    return job_.host_of.at(n) == job_.host_of.at(job_.node) && !has_left(n);
  }
  [[nodiscard]] bool by_memory() const {
    return uses_memory(job_.transport) && job_.shared_memory >= 0 &&
           (on_this_host_.size() > 1 || job_.elastic);
  }
  // Also where memory could not be had, or others may come.
  [[nodiscard]] bool by_network() const {
    return several_ && (!by_memory() || on_this_host_.size() < job_.nodes ||
                        (job_.elastic && over_ != network_kind::none));
  }

  // Each adds to opened_ what there is to know afterwards.
  net::shm::shm_transport* open_memory();
  void open_addressed(std::unique_ptr<net::addressed_transport> made, net::shm::shm_transport* shm);
  void learn(const std::vector<launch::address>& directory);
  void find_ways();
  void open_over_networks(net::shm::shm_transport* shm);
  [[nodiscard]] std::vector<launch::address> directory(bool spare) const;
  // Those to whom this node should have connected over its first or its spare networks, and has
  // not.
  void find_closed(const connected& c, bool spare);
  // Tells them, and drops whom others have found closed; all who have connected are answered
  // meanwhile, and while `first` does something.
  void agree(connected& c, bool spare, const std::function<void()>& first);
  void complain() const;
  std::unique_ptr<net::transport> measure(net::transport& over, own_sockets& own,
                                          const connecting& how, const net::tcp::options& o);

  launch::control_line& line_;
  const launch::job_description& job_;
  const options& settings_;
  const std::vector<std::string> networks_;
  const std::string build_ = launch::build_id();
  std::vector<net::node_id> on_this_host_;
  const bool several_;
  const network_kind over_;
  connections opened_;

  // Where two nodes share several networks. Closed: those of this node that it has found since it
  // has told of any; and all that all have told of.
  std::vector<std::optional<std::uint16_t>> first_networks_{}, spare_networks_{};  // by node
  std::vector<launch::closed_link> found_closed_{}, closed_{};
  std::map<std::uint16_t, std::string> why_closed_{};  // by network: what was heard first
};

opening::opening(launch::control_line& line, const options& settings)
    : line_(line),
      job_(line.job()),
      settings_(settings),
      networks_(launch::networks_in(settings.networks)),
      several_(job_.nodes > 1 || job_.elastic),
      over_(network_of(job_.transport)),
      opened_{{}, {}, routes(job_.node, job_.capacity), {}, {}, {}, {}, nullptr, {}} {
  for (unsigned n = 0; n < job_.nodes; ++n) {
    if (is_here(n)) on_this_host_.push_back(static_cast<net::node_id>(n));
  }
}

net::shm::shm_transport* opening::open_memory() {
  net::shm::settings s;
  s.memory = job_.shared_memory;
  s.self = job_.node;
  s.nodes = on_this_host_;
  if (job_.elastic) {
    // Whoever may come has a place.
    s.nodes.resize(job_.capacity);
    std::iota(s.nodes.begin(), s.nodes.end(), net::node_id{0});
    for (const net::node_id n : s.nodes) {
      if (n >= job_.nodes || !is_here(n)) s.later.push_back(n);
    }
  }
  auto made = std::make_unique<net::shm::shm_transport>(s);
  net::shm::shm_transport* const shm = made.get();
  opened_.transports.push_back(std::move(made));
  return shm;
}

// To all who are not reached by memory, wherever they are.
void opening::open_addressed(std::unique_ptr<net::addressed_transport> made,
                             net::shm::shm_transport* shm) {
  const std::int64_t deadline = os::now_ns() + job_.start_limit_ns;
  learn(line_.exchange(made->address(), build_));
  made->connect(directory(false), deadline);
  if (job_.elastic) opened_.door = std::make_unique<entrance>(job_, *opened_.who, shm, *made);
  opened_.transports.push_back(std::move(made));
}

void opening::learn(const std::vector<launch::address>& directory) {
  for (unsigned n = 0; n < job_.nodes; ++n) {
    if (!has_left(n))
      opened_.who->set(static_cast<node_id>(n), job_.host_of.at(n), directory.at(n));
  }
}

// Over the networks that the user has named.
void opening::find_ways() {
  reach& who = *opened_.who;
  way_plan plan = first_plan(job_.founders);
  if (networks_.size() > 1 && job_.late) {
    for (const launch::closed_link& c : line_.share_closed({})) who.close(c);
    opened_.told = line_.share_measurements({});
    plan = learn_plan(line_);
    who.set_costs(costs_by(job_, opened_.told, plan));
  }
  if (networks_.size() > 1) opened_.plan = plan;
  opened_.ways = ways_of(job_, who, plan);
  if (const auto out = opened_.ways.unreachable(job_.nodes, job_.left))
    throw user_error("networks: no way leads from node " + std::to_string(job_.node) + " to node " +
                     std::to_string(*out) + " over " + settings_.networks +
                     ": name a network that both are on, or one that joins theirs");
}

// The same over TCP, or over UDP on the networks that the user has named.
void opening::open_over_networks(net::shm::shm_transport* shm) {
  const net::tcp::options o = socket_options(settings_);
  net::tcp::mesh_options mesh;
  mesh.socket_buffer_bytes = o.socket_buffer_bytes;
  reach& who = *opened_.who;
  const bool by_udp = over_ == network_kind::udp;
  own_sockets own = by_udp ? open_sockets(job_, networks_)
                           : open_listeners(job_, networks_, o.socket_buffer_bytes);
  learn(line_.exchange(own.where, build_));
  if (!networks_.empty()) find_ways();
  if (by_udp && own.udp == nullptr)
    throw user_error("networks: this host is on none of " + settings_.networks +
                     ": name one that it is on, with an address of its own");
  const bool partly = has_spares(job_, networks_);
  const net::tcp::identity me = net::tcp::identity_in(job_, build_);
  // Who dies meanwhile connects to nobody, and nobody should wait for it.
  net::tcp::mesh_options attentive = mesh;
  attentive.news = line_.news_fd();
  attentive.on_news = [this] { line_.look(); };
  const connecting how{me, os::now_ns(), job_.start_limit_ns, attentive, partly};
  connected first = connect(own, which::first, directory(false), how);
  if (partly) {
    for (unsigned n = 0; n < job_.capacity; ++n) {
      first_networks_.push_back(who.network(job_.node, static_cast<node_id>(n)));
      spare_networks_.push_back(who.spare_network(job_.node, static_cast<node_id>(n)));
    }
    find_closed(first, false);
    agree(first, false, [] {});
  }
  net::udp::udp_transport* udp = nullptr;
  net::tcp::tcp_transport* tcp = nullptr;
  std::unique_ptr<net::transport> over, spare;
  if (by_udp) {
    auto made = std::move(first).udp();
    udp = made.get();
    over = std::move(made);
  } else {
    auto made = std::move(first).tcp(job_.node, o);
    tcp = made.get();
    over = std::move(made);
  }
  if (partly) spare = measure(*over, own, how, o);
  if (job_.elastic)
    opened_.door = udp != nullptr
                       ? std::make_unique<entrance>(job_, who, shm, *udp)
                       : std::make_unique<entrance>(job_, build_, who, std::move(own.listeners),
                                                    shm, tcp, mesh);
  opened_.transports.push_back(std::move(over));
  if (spare != nullptr) opened_.transports.push_back(std::move(spare));
}

std::vector<launch::address> opening::directory(bool spare) const {
  const reach& who = *opened_.who;
  std::vector<launch::address> all;
  for (unsigned n = 0; n < job_.capacity; ++n) {
    const auto node = static_cast<node_id>(n);
    all.push_back(spare ? who.spare_towards(job_.node, node) : who.towards(job_.node, node));
  }
  return all;
}

void opening::find_closed(const connected& c, bool spare) {
  const auto& networks = spare ? spare_networks_ : first_networks_;
  for (unsigned n = 0; n < job_.capacity; ++n) {
    const auto node = static_cast<node_id>(n);
    if (!networks[n] || n == job_.node || c.reaches(node)) continue;
    const auto [lower, higher] = std::minmax(job_.node, node);
    found_closed_.push_back({lower, higher, *networks[n]});
    if (std::string& why = why_closed_[*networks[n]]; why.empty()) why = c.trouble_with(node);
  }
}

void opening::agree(connected& c, bool spare, const std::function<void()>& first) {
  std::vector<node_id> lost;
  {
    std::optional<surveyor> answering;
    if (c.needs_care() != nullptr)
      answering.emplace(*c.needs_care(), job_.node, job_.capacity, std::vector<node_id>{},
                        survey::limits{}, surveyor::connections::spare);
    first();
    closed_ = line_.share_closed(found_closed_);
    if (answering) {
      (void)answering->end();
      lost = answering->lost();
    }
  }
  // Who has said so over UDP says it once. Of a first connection all will have been told.
  if (spare) {
    for (const node_id n : lost) c.drop(n);
  }
  found_closed_.clear();
  const auto& networks = spare ? spare_networks_ : first_networks_;
  for (const launch::closed_link& l : closed_) {
    if (l.lower != job_.node && l.higher != job_.node) continue;
    const node_id other = l.lower == job_.node ? l.higher : l.lower;
    if (other < job_.capacity && networks[other] == l.network) c.drop(other);
  }
}

// What the nodes that begin the job measure together: their networks, and then those of the spare
// connections, which are returned, if there are any.
std::unique_ptr<net::transport> opening::measure(net::transport& over, own_sockets& own,
                                                 const connecting& how,
                                                 const net::tcp::options& o) {
  reach& who = *opened_.who;
  std::vector<launch::measured_link> mine;
  const std::vector<node_id> others = who.measured_by(job_.node);
  const auto reached_by = [&](const net::transport& t) {
    std::vector<node_id> reached = others;
    std::erase_if(reached, [&](node_id n) { return !t.reaches(n); });
    return reached;
  };
  surveyor by(over, job_.node, job_.capacity, reached_by(over), {});
  // It answers while others wait in vain for theirs.
  connected second = connect(own, which::spare, directory(true), how);
  find_closed(second, true);
  agree(second, true, [&] {
    for (const survey::result& r : by.results()) mine.push_back(r.over(*first_networks_[r.node]));
  });
  for (const launch::closed_link& c : closed_) who.close(c);
  std::unique_ptr<net::transport> spare;
  bool reaches_some = false;
  for (unsigned n = 0; n < job_.capacity; ++n)
    reaches_some = reaches_some || second.reaches(static_cast<node_id>(n));
  if (reaches_some && second.needs_care() != nullptr)
    spare = std::move(second).udp();
  else if (reaches_some)
    spare = std::move(second).tcp(job_.node, o);
  std::optional<surveyor> by_spare;
  if (spare != nullptr) {
    by_spare.emplace(*spare, job_.node, job_.capacity, reached_by(*spare), survey::limits{},
                     surveyor::connections::spare);
    for (const survey::result& r : by_spare->results())
      mine.push_back(r.over(*spare_networks_[r.node]));
  }
  opened_.told = line_.share_measurements(mine);
  opened_.early = by.end();
  if (by_spare) {
    // A connection may have ended already, and have been replaced.
    const std::vector<early_message> more = by_spare->end();
    opened_.early.insert(opened_.early.end(), more.begin(), more.end());
    opened_.lost_spares = by_spare->lost();
  }
  who.set_costs(costs_by(job_, opened_.told, *opened_.plan));
  for (unsigned n = 0; n < job_.capacity; ++n) {
    if (first_networks_[n] != who.network(job_.node, static_cast<node_id>(n)))
      opened_.better_by_spare.push_back(static_cast<node_id>(n));
  }
  opened_.ways = ways_of(job_, who, *opened_.plan);
  complain();
  return spare;
}

// Of networks that were named and do not join whom they should.
void opening::complain() const {
  if (const auto out = opened_.ways.unreachable(job_.nodes, job_.left)) {
    std::string closed;
    for (std::size_t i = 0; i < std::min(closed_.size(), closed_named_max); ++i)
      closed += (i == 0 ? ": nodes " : "; nodes ") + std::to_string(closed_[i].lower) + " and " +
                std::to_string(closed_[i].higher) + " could not connect over " +
                networks_.at(closed_[i].network);
    if (closed_.size() > closed_named_max)
      closed += "; and " + std::to_string(closed_.size() - closed_named_max) + " more";
    throw error("no way leads from node " + std::to_string(job_.node) + " to node " +
                std::to_string(*out) + closed + " (does a packet filter stand between?)");
  }
  // One of two is enough.
  std::map<std::uint16_t, std::vector<int>> nodes;  // by network
  for (const launch::closed_link& c : closed_) {
    if (c.higher == job_.node) nodes[c.network].push_back(c.lower);
  }
  for (const auto& [network, others] : nodes) {
    const auto found = why_closed_.find(network);
    const std::string why =
        found != why_closed_.end() && !found->second.empty() ? " (" + found->second + ")" : "";
    std::fprintf(stderr,
                 "strata: node %u cannot connect to node%s %s over %s%s; messages go other ways\n",
                 unsigned{job_.node}, others.size() == 1 ? "" : "s", os::to_ranges(others).c_str(),
                 networks_.at(network).c_str(), why.c_str());
  }
}

connections opening::all() {
  if (over_ == network_kind::ucx && several_ && !networks_.empty())
    throw user_error("networks: UCX chooses its networks itself; see UCX_NET_DEVICES");
  net::shm::shm_transport* const shm = by_memory() ? open_memory() : nullptr;
  opened_.who = std::make_unique<reach>(job_, shm != nullptr, !networks_.empty());
  if (!by_network()) {
    learn(line_.exchange({}, build_));
    if (job_.elastic)
      opened_.door =
          std::make_unique<entrance>(job_, build_, *opened_.who, std::vector<net::tcp::listener>{},
                                     shm, nullptr, net::tcp::mesh_options{});
  } else if (over_ == network_kind::ucx) {
    open_addressed(make_ucx(job_, settings_, on_this_host_.size() == job_.nodes), shm);
  } else if (over_ == network_kind::udp && networks_.empty()) {
    open_addressed(make_udp(job_, {job_.bind_address}), shm);
  } else {
    open_over_networks(shm);
  }
  return std::move(opened_);
}

}  // namespace

connections open_transports(launch::control_line& line, const options& settings) {
  return opening(line, settings).all();
}

}  // namespace strata::cluster

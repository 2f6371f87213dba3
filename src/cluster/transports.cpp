// SPDX-License-Identifier: Apache-2.0
#include "cluster/transports.hpp"

#include <poll.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/transport_choice.hpp"
#include "cluster/closed_links.hpp"
#include "cluster/connected.hpp"
#include "cluster/finding.hpp"
#include "cluster/own_sockets.hpp"
#include "launch/build_id.hpp"
#include "launch/own_address.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

// Longer than the launcher waits for more nodes to fail once the first has.
constexpr int said_by_first_ms = 5000;

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

std::vector<network_kind> kinds_of(const std::vector<launch::named_network>& networks) {
  std::vector<network_kind> all;
  for (const launch::named_network& n : networks) all.push_back(n.kind);
  return all;
}

std::string words_of(const std::vector<launch::named_network>& networks) {
  std::string all;
  for (const launch::named_network& n : networks) all += (all.empty() ? "" : ",") + n.words;
  return all;
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
                        (job_.elastic && network_of(job_.transport) != network_kind::none));
  }

  using of_parts = std::vector<std::unique_ptr<net::transport>>;
  // Each adds to opened_ what there is to know afterwards.
  net::shm::shm_transport* open_memory();
  [[nodiscard]] own_sockets listen() const;
  void open_parts(net::shm::shm_transport* shm);
  struct joined {
    of_parts first{}, spares{};
    entrance::transports by{};
  };
  // Connects with all others.
  [[nodiscard]] joined join(const connecting& how);
  void learn(const std::vector<launch::address>& directory);
  void find_networks();
  void find_ways();
  [[nodiscard]] of_parts begin(std::vector<connected> all, entrance::transports& by);
  [[nodiscard]] bool reaches_somebody(const net::transport& t) const;
  // By part: where all are whom this node is to connect to over that.
  [[nodiscard]] std::vector<std::vector<launch::address>> directories(which w) const;
  [[nodiscard]] of_parts measure(const of_parts& first, const connecting& how);
  // Once all transports are there.
  void keep_doors_open(const connecting& how);

  launch::control_line& line_;
  const launch::job_description& job_;
  const options& settings_;
  std::vector<launch::named_network> networks_;  // that the user has named, or that were found
  const std::string build_ = launch::build_id();
  std::vector<net::node_id> on_this_host_;
  const bool several_;
  connections opened_;
  joined_hosts joins_{};       // until opened_.who has it
  std::vector<part> parts_{};  // of what this node listens with

  closed_links closed_{line_, parts_};  // where two nodes share several networks
  std::vector<reopening::line> lines_;  // of all that begin(), without networks
};

opening::opening(launch::control_line& line, const options& settings)
    : line_(line),
      job_(line.job()),
      settings_(settings),
      networks_(launch::networks_in(settings.networks, network_of(job_.transport))),
      several_(job_.nodes > 1 || job_.elastic),
      opened_{{}, {}, routes(job_.node, job_.capacity), {}, {}, {}, {}, nullptr, nullptr, {},
              {}, {}} {
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

void opening::learn(const std::vector<launch::address>& directory) {
  for (unsigned n = 0; n < job_.nodes; ++n) {
    if (!has_left(n))
      opened_.who->set(static_cast<node_id>(n), job_.host_of.at(n), directory.at(n));
  }
}

// Of networks of which none was named. What comes of that is a job as if these had been.
void opening::find_networks() {
  finding found = cluster::find_networks(line_, settings_);
  networks_ = std::move(found.networks);
  joins_ = std::move(found.joins);
}

// Over networks that were named, or found.
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
                     std::to_string(*out) + " over " + words_of(networks_) +
                     ": name a network that both are on, or one that joins theirs");
}

// What keeps one node of a host from listening keeps the others from it too. The first of them says
// so, and the launcher ends those that have not joined by then, so that it is said once.
own_sockets opening::listen() const {
  try {
    return open_sockets(job_, networks_, settings_);
  } catch (const error&) {
    const bool is_first = on_this_host_.empty() || on_this_host_.front() >= job_.node;
    if (!is_first && !job_.late && line_.news_fd() >= 0) {
      pollfd news{line_.news_fd(), POLLIN, 0};
      (void)::poll(&news, 1, said_by_first_ms);
    }
    throw;
  }
}

// To all who are not reached by memory, wherever they are.
void opening::open_parts(net::shm::shm_transport* shm) {
  own_sockets own = listen();
  parts_ = std::move(own.parts);
  learn(line_.exchange(own.where, build_));
  if (!networks_.empty()) find_ways();
  const bool partly = has_spares(job_, networks_);
  const connecting how{net::tcp::identity_in(job_, build_),
                       os::now_ns(),
                       job_.start_limit_ns,
                       settings_.socket_bytes,
                       // Who dies meanwhile connects to nobody, and nobody should wait for it.
                       {line_.news_fd(), [this] { line_.look(); }},
                       partly};
  joined all;
  or_hear_why(how, [&] { all = join(how); });
  if (partly) closed_.complain(opened_.ways, networks_);
  all.by.shm = shm;
  if (job_.elastic) {
    for (part& p : parts_) {
      for (net::tcp::listener& door : p.first.listeners) all.by.doors.push_back(std::move(door));
    }
    all.by.mesh.socket_buffer_bytes = settings_.socket_bytes;
    opened_.door = std::make_unique<entrance>(job_, build_, *opened_.who, std::move(all.by));
  }
  const auto keep = [this](std::unique_ptr<net::transport>& t, const auto& networks) {
    opened_.networks.push_back({t.get(), networks});
    opened_.transports.push_back(std::move(t));
  };
  for (auto& t : all.first) {
    // A comer may need one that nobody else does.
    if (job_.elastic || reaches_somebody(*t)) keep(t, closed_.networks(which::first));
  }
  for (auto& t : all.spares) {
    if (reaches_somebody(*t)) keep(t, closed_.networks(which::spare));
  }
  for (const launch::named_network& n : networks_) opened_.network_names.push_back(n.words);
  if (partly) keep_doors_open(how);
}

opening::joined opening::join(const connecting& how) {
  joined made;
  std::vector<connected> all = connect(parts_, which::first, directories(which::first), how);
  closed_.expect(*opened_.who);
  if (how.partly) {
    closed_.find(all, which::first);
    closed_.agree(all, which::first);
  }
  made.first = begin(std::move(all), made.by);
  if (how.partly) made.spares = measure(made.first, how);
  return made;
}

// Those of spare connections: nobody else looks for this node there any more.
void opening::keep_doors_open(const connecting& how) {
  std::vector<reopening::line> lines;
  for (const reopening::line& l : lines_) {
    const auto found = std::find_if(opened_.networks.begin(), opened_.networks.end(),
                                    [&](const on_networks& one) { return one.over == l.over; });
    if (found == opened_.networks.end() || (l.tcp == nullptr && l.renews == nullptr)) continue;
    lines.push_back(l);
    lines.back().networks = found->by_node;
    // Those of all parts, and what was closed, are in the table too.
    for (unsigned n = 0; n < job_.capacity; ++n) {
      if (!l.over->reaches(static_cast<node_id>(n))) lines.back().networks[n].reset();
    }
  }
  reopening::doors doors;
  const bool by_tcp =
      std::any_of(lines.begin(), lines.end(), [](const auto& l) { return l.tcp != nullptr; });
  for (part& p : parts_) {
    if (!by_tcp) break;
    for (std::size_t i = 0; i < p.spare.listeners.size(); ++i) {
      doors.where.push_back(std::move(p.spare.listeners[i]));
      doors.networks.push_back(p.networks[i]);
    }
  }
  if (lines.empty()) return;
  opened_.again = std::make_unique<reopening>(how.me, std::move(doors), how.socket_buffer_bytes,
                                              std::move(lines));
}

opening::of_parts opening::begin(std::vector<connected> all, entrance::transports& by) {
  of_parts begun;
  by.addressed.resize(std::max<std::size_t>(networks_.size(), 1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    connected::transport t = std::move(all[i]).begin(job_.node, socket_options(settings_));
    if (t.tcp != nullptr) by.tcp = t.tcp;
    lines_.push_back(
        {t.over.get(), t.tcp, t.addressed != nullptr ? t.addressed->renews() : nullptr, {}});
    if (networks_.empty()) by.addressed[0] = t.addressed;
    for (const std::uint16_t network : parts_[i].networks) by.addressed[network] = t.addressed;
    begun.push_back(std::move(t.over));
  }
  return begun;
}

bool opening::reaches_somebody(const net::transport& t) const {
  for (unsigned n = 0; n < job_.capacity; ++n) {
    if (t.reaches(static_cast<node_id>(n))) return true;
  }
  return false;
}

std::vector<std::vector<launch::address>> opening::directories(which w) const {
  const reach& who = *opened_.who;
  std::vector<std::vector<launch::address>> all(parts_.size());
  for (unsigned n = 0; n < job_.capacity; ++n) {
    const auto node = static_cast<node_id>(n);
    const bool is_first = w == which::first;
    const auto network =
        is_first ? who.network(job_.node, node) : who.spare_network(job_.node, node);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      all[i].push_back(!parts_[i].serves(network) ? launch::address{}
                       : is_first                 ? who.towards(job_.node, node)
                                                  : who.spare_towards(job_.node, node));
    }
  }
  return all;
}

// What the nodes that begin the job measure together: their networks, and then those of the spare
// connections, which are returned.
opening::of_parts opening::measure(const of_parts& first, const connecting& how) {
  reach& who = *opened_.who;
  std::vector<launch::measured_link> mine;
  const std::vector<node_id> others = who.measured_by(job_.node);
  const auto begin_to_measure = [&](const of_parts& over, surveyor::connections kind_of) {
    std::vector<std::unique_ptr<surveyor>> by;
    for (const auto& t : over) {
      std::vector<node_id> reached = others;
      std::erase_if(reached, [&](node_id n) { return !t->reaches(n); });
      by.push_back(std::make_unique<surveyor>(*t, job_.node, job_.capacity, reached,
                                              survey::limits{}, kind_of));
    }
    return by;
  };
  const auto by_first = begin_to_measure(first, surveyor::connections::needed);
  // They answer while others wait in vain for theirs.
  std::vector<connected> second = connect(parts_, which::spare, directories(which::spare), how);
  closed_.find(second, which::spare);
  const auto add_results = [&](surveyor& by, which w) {
    for (const survey::result& r : by.results())
      mine.push_back(r.over(*closed_.networks(w)[r.node]));
  };
  for (const auto& by : by_first) add_results(*by, which::first);
  closed_.agree(second, which::spare);
  for (const launch::closed_link& c : closed_.told()) who.close(c);
  entrance::transports by_none;
  of_parts spares = begin(std::move(second), by_none);
  std::erase_if(spares, [this](const auto& t) { return !reaches_somebody(*t); });
  const auto by_spares = begin_to_measure(spares, surveyor::connections::spare);
  for (const auto& by : by_spares) add_results(*by, which::spare);
  opened_.told = line_.share_measurements(mine);
  const auto take_early = [this](surveyor& by) {
    const std::vector<early_message> more = by.end();
    opened_.early.insert(opened_.early.end(), more.begin(), more.end());
  };
  for (const auto& by : by_first) take_early(*by);
  // A connection may have ended already, and have been replaced.
  for (std::size_t i = 0; i < spares.size(); ++i) {
    take_early(*by_spares[i]);
    for (const ended_connection& e : by_spares[i]->lost())
      opened_.lost_spares.push_back({e.node, spares[i].get()});
  }
  who.set_costs(costs_by(job_, opened_.told, *opened_.plan));
  for (unsigned n = 0; n < job_.capacity; ++n) {
    if (closed_.networks(which::first)[n] != who.network(job_.node, static_cast<node_id>(n)))
      opened_.better_by_spare.push_back(static_cast<node_id>(n));
  }
  opened_.ways = ways_of(job_, who, *opened_.plan);
  return spares;
}

connections opening::all() {
  net::shm::shm_transport* const shm = by_memory() ? open_memory() : nullptr;
  if (by_network() && settings_.networks == networks_to_find) find_networks();
  opened_.who = std::make_unique<reach>(job_, shm != nullptr, kinds_of(networks_));
  opened_.who->set_joined(std::move(joins_));
  if (by_network()) {
    open_parts(shm);
  } else {
    learn(line_.exchange({}, build_));
    entrance::transports by;
    by.shm = shm;
    if (job_.elastic)
      opened_.door = std::make_unique<entrance>(job_, build_, *opened_.who, std::move(by));
  }
  return std::move(opened_);
}

}  // namespace

connections open_transports(launch::control_line& line, const options& settings) {
  return opening(line, settings).all();
}

}  // namespace strata::cluster

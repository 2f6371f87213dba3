// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/transports.hpp"

#include <poll.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cluster/opening/finding.hpp"
#include "cluster/opening/opening.hpp"
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

}  // namespace

opening::opening(launch::control_line& line, const options& settings, std::string build)
    : line_(line),
      job_(line.job()),
      settings_(settings),
      networks_(launch::networks_in(settings.networks, network_of(job_.transport))),
      build_(std::move(build)),
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

connections open_transports(launch::control_line& line, const options& settings,
                            const std::string& build) {
  return opening(line, settings, build).all();
}

}  // namespace strata::cluster

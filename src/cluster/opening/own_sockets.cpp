// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/own_sockets.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "net/ucx/available.hpp"
#include "net/udp/udp_transport.hpp"
#include "strata/error.hpp"
#if defined(STRATA_HAS_UCX)
#include <sys/socket.h>

#include <cerrno>

#include "net/cannot_listen.hpp"
#include "net/ucx/devices.hpp"
#include "net/ucx/ucx_transport.hpp"
#include "os/descriptor.hpp"
#endif

namespace strata::cluster {
namespace {

using launch::named_network;

// Of a network that the user has named: this node's address there.
struct own_network {
  std::uint16_t number;  // its place in the user's list
  network_kind kind;
  launch::network_address mine;
};
std::vector<own_network> own_networks(const launch::job_description& job,
                                      const std::vector<named_network>& networks) {
  const std::vector<launch::network_address> own = launch::own_addresses();
  std::vector<own_network> all;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::string& range = networks[i].range;
    if (const auto mine =
            launch::address_within(own, range.empty() ? range_of(job.bind_address) : range))
      all.push_back({static_cast<std::uint16_t>(i), networks[i].kind, *mine});
  }
  return all;
}

std::unique_ptr<net::udp::udp_transport> make_udp(const launch::job_description& job,
                                                  const options& settings,
                                                  std::vector<std::string> bind_addresses) {
  net::udp::settings s;
  s.silence_ns_max = udp_silence_ns_max(settings);
  s.bind_addresses = std::move(bind_addresses);
  s.self = job.node;
  s.nodes = job.capacity;
  s.key = job.key;
  s.job = job.job;
  return std::make_unique<net::udp::udp_transport>(s);
}

#if defined(STRATA_HAS_UCX)
// UCX would look for a free port without end, and never say so. Nothing else counts: UCX chooses
// its interfaces itself, and `address` need not be one of this host (behind a translator of
// addresses, say).
void expect_free_port(const std::string& address) {
  sockaddr_storage any{};  // all zero: every interface, any port
  any.ss_family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const os::descriptor s(::socket(any.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!s) return;
  const int yes = 1;
  ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if ((::bind(s.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
       ::listen(s.get(), 1) != 0) &&
      errno == EADDRINUSE) {
    throw net::cannot_listen(address, 0, EADDRINUSE);
  }
}

std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description& job,
                                                   const options& settings,
                                                   const std::string& address, std::string devices,
                                                   bool by_networks) {
  if (net::ucx::listens_on_any_port()) expect_free_port(address);
  net::ucx::settings s;
  // Who comes late is admitted while this node receives, or may itself be the one who cannot be
  // reached, and where there are several networks the job goes on without one.
  s.some_unreachable = job.elastic || job.late || by_networks;
  s.transfers = settings.rendezvous == "always"  ? net::ucx::rendezvous::always
                : settings.rendezvous == "never" ? net::ucx::rendezvous::never
                                                 : net::ucx::rendezvous::automatic;
  s.devices = std::move(devices);
  s.self = job.node;
  s.nodes = job.capacity;
  s.key = job.key;
  s.job = job.job;
  return std::make_unique<net::ucx::ucx_transport>(s);
}
// Nobody from outside has business with a job of one host. Between hosts UCX knows best.
std::string devices_for_all(const launch::job_description& job) {
  const bool one_host =
      std::all_of(job.host_of.begin(), job.host_of.end(),
                  [&](std::uint16_t host) { return host == job.host_of.at(job.node); });
  return one_host ? net::ucx::device_of(job.bind_address) : std::string();
}
std::string devices_on(const launch::network_address& own) {
  return net::ucx::devices_behind(own.interface);
}
#else
std::unique_ptr<net::addressed_transport> make_ucx(const launch::job_description&, const options&,
                                                   const std::string&, const std::string&, bool) {
  throw error(net::ucx::how_to_get());
}
std::string devices_for_all(const launch::job_description&) { return {}; }
std::string devices_on(const launch::network_address&) { return {}; }
#endif

own_sockets open_on_own_address(const launch::job_description& job, const options& settings) {
  own_sockets e;
  part& all = e.parts.emplace_back();
  all.kind = network_of(job.transport);
  if (all.kind == network_kind::ucx) {
    all.first.addressed = make_ucx(job, settings, job.bind_address, devices_for_all(job), false);
  } else if (all.kind == network_kind::udp) {
    all.first.addressed = make_udp(job, settings, {job.bind_address});
  } else {
    all.first.listeners.emplace_back(job.bind_address, 0, settings.socket_bytes);
    e.where = all.first.listeners.back().address();
    return e;
  }
  e.where = all.first.addressed->address();
  return e;
}

part tcp_part(const std::vector<own_network>& own, std::size_t buffer_bytes, bool spares,
              std::vector<launch::address::door>& doors) {
  part p;
  for (const own_network& n : own) {
    p.networks.push_back(n.number);
    launch::address::door& d = doors[n.number];
    const launch::address there =
        p.first.listeners.emplace_back(n.mine.numeric, 0, buffer_bytes).address();
    d.host = there.host;
    d.port = there.port;
    if (!spares) continue;
    d.spare_port = p.spare.listeners.emplace_back(n.mine.numeric, 0, buffer_bytes).address().port;
  }
  return p;
}

part udp_part(const std::vector<own_network>& own, const launch::job_description& job,
              const options& settings, bool spares, std::vector<launch::address::door>& doors) {
  part p;
  p.kind = network_kind::udp;
  std::vector<std::string> hosts;
  for (const own_network& n : own) {
    p.networks.push_back(n.number);
    hosts.push_back(n.mine.numeric);
  }
  auto first = make_udp(job, settings, hosts);
  const std::vector<launch::address> at = first->addresses();
  p.first.addressed = std::move(first);
  for (std::size_t i = 0; i < own.size(); ++i) {
    launch::address::door& d = doors[own[i].number];
    d.host = at[i].host;
    d.port = at[i].port;
    d.worker = at[i].worker;
  }
  if (!spares) return p;
  auto spare = make_udp(job, settings, hosts);
  const std::vector<launch::address> spare_at = spare->addresses();
  p.spare.addressed = std::move(spare);
  for (std::size_t i = 0; i < own.size(); ++i) {
    launch::address::door& d = doors[own[i].number];
    d.spare_port = spare_at[i].port;
    d.spare_worker = spare_at[i].worker;
  }
  return p;
}

part ucx_part(const own_network& own, const launch::job_description& job, const options& settings,
              bool has_spare, launch::address::door& d) {
  part p;
  p.kind = network_kind::ucx;
  p.networks = {own.number};
  const std::string devices = devices_on(own.mine);
  p.first.addressed = make_ucx(job, settings, own.mine.numeric, devices, true);
  d.worker = p.first.addressed->address().worker;
  if (!has_spare) return p;
  p.spare.addressed = make_ucx(job, settings, own.mine.numeric, devices, true);
  d.spare_worker = p.spare.addressed->address().worker;
  return p;
}

}  // namespace

bool part::serves(std::optional<std::uint16_t> network) const noexcept {
  if (!network) return networks.empty();
  return std::find(networks.begin(), networks.end(), *network) != networks.end();
}

std::int64_t udp_silence_ns_max(const options& settings) {
  return std::max(net::udp::settings{}.silence_ns_max,
                  std::int64_t{settings.lost_after_ms} * 1'000'000);
}

bool has_spares(const launch::job_description& job, const std::vector<named_network>& networks) {
  return networks.size() > 1 && !job.late;
}

own_sockets open_sockets(const launch::job_description& job,
                         const std::vector<named_network>& networks, const options& settings) {
  if (networks.empty()) return open_on_own_address(job, settings);
  const std::vector<own_network> own = own_networks(job, networks);
  // With one network it shares no second one with anybody.
  const bool spares = has_spares(job, networks) && own.size() > 1;
  own_sockets e;
  std::vector<launch::address::door>& doors = e.where.doors;
  doors.resize(networks.size());
  for (const own_network& n : own) doors[n.number].megabits = n.mine.megabits;
  const auto of_kind = [&](network_kind k) {
    std::vector<own_network> some;
    std::copy_if(own.begin(), own.end(), std::back_inserter(some),
                 [k](const own_network& n) { return n.kind == k; });
    return some;
  };
  // First: a worker may stand in for the receiver of the first transport, over TCP.
  if (const auto some = of_kind(network_kind::tcp); !some.empty())
    // There connections are made again, too.
    e.parts.push_back(tcp_part(some, settings.socket_bytes, has_spares(job, networks), doors));
  for (const own_network& n : of_kind(network_kind::ucx))
    e.parts.push_back(ucx_part(n, job, settings, spares, doors[n.number]));
  if (const auto some = of_kind(network_kind::udp); !some.empty())
    e.parts.push_back(udp_part(some, job, settings, spares, doors));
  return e;
}

}  // namespace strata::cluster

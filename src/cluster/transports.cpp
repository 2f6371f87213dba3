// SPDX-License-Identifier: Apache-2.0
#include "cluster/transports.hpp"

#include "launch/build_id.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/tcp/mesh.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "net/ucx/available.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"
#if defined(STRATA_HAS_UCX)
#include "net/ucx/devices.hpp"
#include "net/ucx/ucx_transport.hpp"
#endif

namespace strata::cluster {
namespace {

using launch::transport_choice;

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
std::unique_ptr<net::transport> open_ucx(launch::control_line& line, const std::string& build,
                                         bool one_host) {
  const launch::job_description& job = line.job();
  net::ucx::settings s;
  s.self = job.node;
  s.nodes = job.nodes;
  s.key = job.key;
  s.job = job.job;
  // Nobody from outside has business with a job of one host. Between hosts UCX knows best.
  if (one_host) s.devices = net::ucx::device_of(job.bind_address);
  const std::int64_t deadline = os::now_ns() + job.start_limit_ns;
  auto opened = std::make_unique<net::ucx::ucx_transport>(s);
  std::vector<std::string> workers;
  for (launch::address& where : line.exchange({{}, 0, opened->address()}, build)) {
    workers.push_back(std::move(where.worker));
  }
  opened->connect(workers, deadline);
  return opened;
}
#else
std::unique_ptr<net::transport> open_ucx(launch::control_line&, const std::string&, bool) {
  throw error(net::ucx::how_to_get());
}
#endif

}  // namespace

std::vector<std::unique_ptr<net::transport>> open_transports(launch::control_line& line,
                                                             const options& settings) {
  const launch::job_description& job = line.job();
  std::vector<net::node_id> on_this_host;
  for (unsigned n = 0; n < job.nodes; ++n) {
    if (job.host_of.at(n) == job.host_of.at(job.node))
      on_this_host.push_back(static_cast<net::node_id>(n));
  }
  const bool by_ucx = job.transport == transport_choice::ucx && job.nodes > 1;
  const bool by_memory =
      (job.transport == transport_choice::automatic || job.transport == transport_choice::shm) &&
      job.shared_memory >= 0 && on_this_host.size() > 1;
  const bool by_tcp = !by_memory || on_this_host.size() < job.nodes;

  std::vector<std::unique_ptr<net::transport>> opened;
  if (by_memory) {
    net::shm::settings s;
    s.memory = job.shared_memory;
    s.self = job.node;
    s.nodes = on_this_host;
    opened.push_back(std::make_unique<net::shm::shm_transport>(s));
  }
  const std::string build = launch::build_id();
  if (by_ucx) {
    opened.push_back(open_ucx(line, build, on_this_host.size() == job.nodes));
    return opened;
  }
  if (!by_tcp || job.nodes == 1) {
    line.exchange({}, build);
    return opened;
  }
  const net::tcp::options o = socket_options(settings);
  const std::int64_t deadline = os::now_ns() + job.start_limit_ns;
  net::tcp::listener door(job.bind_address, 0, o.socket_buffer_bytes);
  std::vector<launch::address> directory = line.exchange(door.address(), build);
  if (by_memory) {
    for (const net::node_id n : on_this_host) directory.at(n).port = 0;
  }
  net::tcp::mesh_options mesh;
  mesh.socket_buffer_bytes = o.socket_buffer_bytes;
  auto sockets =
      net::tcp::connect_mesh(net::tcp::identity_in(job, build), door, directory, deadline, mesh);
  opened.push_back(std::make_unique<net::tcp::tcp_transport>(job.node, std::move(sockets), o));
  return opened;
}

}  // namespace strata::cluster

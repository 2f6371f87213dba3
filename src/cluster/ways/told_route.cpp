// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/told_route.hpp"

namespace strata::cluster {
namespace {

const nominal_link& nominal_of(first_hop first) {
  return first == first_hop::memory        ? nominal_memory
         : first == first_hop::within_host ? nominal_loopback
                                           : nominal_network;
}

}  // namespace

route told_route(const routes::way& w, first_hop first, const char* transport) {
  route r{.next = w.next, .hops = w.hops, .transport = transport, .cost_ns = w.cost_ns};
  const bool all_memory = w.bytes_per_s == link::unlimited;
  r.is_measured = w.bytes_per_s != 0 && !all_memory;
  if (r.is_measured) {
    r.latency_ns = w.latency_ns;
    r.bytes_per_s = w.bytes_per_s;
    return r;
  }
  const std::int64_t hops = w.hops;
  // Where all are neighbours ways have no cost; and to the networks a host's own nodes are as far
  // as others.
  if (w.cost_ns == 0 || all_memory || (hops == 1 && first == first_hop::within_host)) {
    const nominal_link& n = all_memory ? nominal_memory : nominal_of(first);
    r.cost_ns = hops * n.cost_ns();
    r.latency_ns = hops * n.latency_ns;
    r.bytes_per_s = n.bytes_per_s;
    return r;
  }
  // Of what the interfaces' speeds make of it, so that all of it is the cost; a part may be memory.
  const std::int64_t latency_ns =
      w.latency_ns != 0 ? w.latency_ns : hops * nominal_network.latency_ns;
  const std::int64_t carried_ns = w.cost_ns - latency_ns;
  if (carried_ns > 0) {
    r.latency_ns = latency_ns;
    r.bytes_per_s = hops * typical_bytes * 1'000'000'000 / carried_ns;
  } else {
    r.latency_ns = w.cost_ns;
    r.bytes_per_s = nominal_network.bytes_per_s;
  }
  return r;
}

}  // namespace strata::cluster

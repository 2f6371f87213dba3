// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/placement.hpp"

#include <algorithm>

#include "strata/error.hpp"
#include "tools/strata/hosts/addresses.hpp"

namespace strata::launcher {

namespace {

std::string without_user(const std::string& name) { return name.substr(name.find('@') + 1); }

// Whether ssh would lead back to here.
bool is_local(const std::string& name, const std::string& numeric_address) {
  return name.find('@') == std::string::npos && is_this_machine(name, numeric_address);
}

// Where nodes are to listen, as the user named it. They would listen on "all addresses", and others
// would be told to connect to that.
std::string resolve_for_nodes(const std::string& name) {
  const std::string numeric = resolve(name);
  if (is_unspecified(numeric)) {
    throw user_error("nodes cannot be reached at " +
                     (name == numeric ? numeric : name + " (" + numeric + ")") +
                     ", which stands for all addresses; give one of their host's");
  }
  return numeric;
}

}  // namespace

std::vector<placed_host> place(const run_request& what, std::vector<std::uint16_t>& host_of) {
  const std::vector<host>& hosts = what.hosts;
  host_of =
      hosts.empty() ? std::vector<std::uint16_t>(what.nodes, 0) : place_nodes(hosts, what.nodes);
  const std::size_t names = host_of.back() + 1U;
  std::vector<placed_host> placed;
  if (hosts.empty()) placed.emplace_back();
  std::vector<std::uint16_t> host_behind(names, 0);  // a name
  std::string remote_address;
  for (std::size_t name = 0; name < std::min(names, hosts.size()); ++name) {
    const host& h = hosts[name];
    const std::string numeric =
        resolve_for_nodes(h.address.empty() ? without_user(h.name) : h.address);
    const placed_host p{h.name, is_local(h.name, numeric), numeric, {}};
    if (!p.local) remote_address = numeric;
    // All names of this machine are one host: its nodes share its cores, and memory.
    const auto same = std::find_if(placed.begin(), placed.end(), [&](const placed_host& other) {
      return p.local && other.local;
    });
    host_behind[name] = static_cast<std::uint16_t>(same - placed.begin());
    if (same == placed.end()) {
      placed.push_back(p);
    } else if (!h.address.empty()) {
      same->bind_address = numeric;
    }
  }
  for (std::uint16_t& number : host_of) number = host_behind[number];
  const bool several = placed.size() > 1;
  for (placed_host& p : placed) {
    // Later nodes of an elastic job may be elsewhere: it keeps an address that they can reach.
    const bool for_others = what.elastic && !(p.local && is_loopback(p.bind_address));
    if (!several && !for_others) p.bind_address = placed_host().bind_address;
  }
  for (placed_host& p : placed) {
    // Many machines know their own name as a loopback address, which is of no use to the others, if
    // there are any.
    if (!remote_address.empty() && p.local && is_loopback(p.bind_address) &&
        !is_loopback(remote_address)) {
      p.bind_address = source_address_towards(remote_address);
      if (p.bind_address.empty()) {
        throw user_error("no way from here to " + remote_address + "; add address=A to " + p.name);
      }
    }
  }
  if (!what.bind_address.empty()) {
    if (several) {
      throw user_error("--bind-address is for one host; give address=A in the hostfile instead");
    }
    try {
      placed[0].bind_address = resolve_for_nodes(what.bind_address);
    } catch (const user_error& problem) {
      throw user_error(std::string("--bind-address: ") + problem.what());
    }
  }
  if (several && what.transport == transport_choice::shm) {
    throw user_error("--transport shm works within one host; leave it out");
  }
  for (std::size_t node = 0; node < host_of.size(); ++node) {
    placed[host_of[node]].nodes.push_back(static_cast<node_id>(node));
  }
  return placed;
}

placed_host place_late(const join_request& what, transport_choice transport,
                       const std::vector<placed_host>& present) {
  placed_host late{what.host, what.host.empty(), what.address, {}};
  if (late.local) {
    late.name = "localhost";
    late.bind_address = source_address_towards(present[0].bind_address);
    if (late.bind_address.empty()) throw user_error("no way from here to " + present[0].name);
  } else if (!is_numeric_address(what.address)) {
    throw user_error("the host " + what.host + " has no address");
  }
  if (transport == transport_choice::shm) {
    throw user_error("the job uses --transport shm, which works within one host");
  }
  const auto unreachable = [&](const placed_host& one) {
    return is_loopback(one.bind_address) != is_loopback(late.bind_address);
  };
  const auto found = std::find_if(present.begin(), present.end(), unreachable);
  if (found != present.end()) {
    throw user_error("nodes of the job listen on " + found->bind_address + ", those on " +
                     late.name + " would on " + late.bind_address +
                     ": strata run --bind-address or --host says where they listen");
  }
  return late;
}

join_request look_up_late(const std::string& host) {
  check_host_name(host);
  join_request what;
  const std::string numeric = resolve_for_nodes(without_user(host));
  if (is_local(host, numeric)) return what;
  what.host = host;
  what.address = numeric;
  return what;
}

}  // namespace strata::launcher

// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/way_plan.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace strata::cluster {
namespace {

void add_nodes(writer& out, const std::vector<node_id>& nodes) {
  out.add(static_cast<std::uint16_t>(nodes.size()));
  for (const node_id n : nodes) out.add(n);
}

std::vector<node_id> take_nodes(reader& r, node_id nodes) {
  std::vector<node_id> all;
  for (auto left = r.take<std::uint16_t>(); left != 0; --left) {
    all.push_back(r.take<node_id>());
    const bool is_next = all.size() == 1 || all[all.size() - 2] < all.back();
    if (all.back() >= nodes || !is_next) throw malformed("ways of nodes that there are not");
  }
  // All that is ordered is ordered by node 0, which everybody must reach.
  if (all.empty() || all.front() != 0) throw malformed("ways without node 0");
  return all;
}

}  // namespace

bool way_plan::forwards(node_id n) const {
  return std::binary_search(forwarders.begin(), forwarders.end(), n);
}

bool way_plan::is_cut(node_id a, node_id b) const {
  const auto [lower, higher] = std::minmax(a, b);
  const auto found = about_connections.find({lower, higher});
  return found != about_connections.end() && found->second % 2 != 0;
}

routes way_plan::ways(node_id self, node_id nodes, const routes::link_cost& cost) const {
  std::vector<bool> forward(nodes);
  for (const node_id n : forwarders) forward.at(n) = true;
  if (about_connections.empty()) return {self, nodes, std::move(forward), cost};
  return {self, nodes, std::move(forward), [&](node_id a, node_id b) -> std::optional<link> {
            return is_cut(a, b) ? std::nullopt : cost(a, b);
          }};
}

way_plan first_plan(node_id founders) {
  way_plan p;
  p.members.resize(founders);
  std::iota(p.members.begin(), p.members.end(), node_id{0});
  p.forwarders = p.members;
  return p;
}

std::vector<std::vector<launch::measured_link>> with_newer(
    std::vector<std::vector<launch::measured_link>> told,
    const std::vector<way_plan::measurement>& newer, const std::vector<std::uint16_t>& host_of) {
  using pair_of_hosts = std::pair<std::uint16_t, std::uint16_t>;
  const auto hosts = [&](node_id by, node_id other) -> pair_of_hosts {
    if (by >= host_of.size() || other >= host_of.size())
      throw malformed("a measurement of a node that nobody knows");
    return std::minmax(host_of[by], host_of[other]);
  };
  std::set<pair_of_hosts> replaced;
  for (const way_plan::measurement& m : newer) replaced.insert(hosts(m.by, m.what.other));
  for (std::size_t n = 0; n < told.size(); ++n) {
    std::erase_if(told[n], [&](const launch::measured_link& m) {
      return replaced.contains(hosts(static_cast<node_id>(n), m.other));
    });
  }
  if (told.size() < host_of.size()) told.resize(host_of.size());
  for (const way_plan::measurement& m : newer) told[m.by].push_back(m.what);
  return told;
}

void add_measured(writer& out, const std::vector<way_plan::measurement>& all) {
  for (const way_plan::measurement& m : all)
    out.add(m.by).add(m.what.other).add(m.what.network).add(m.what.latency).add(m.what.bandwidth);
}

std::vector<way_plan::measurement> take_measured(reader& r, node_id nodes) {
  using launch::measured_link;
  std::vector<way_plan::measurement> all;
  while (!r.empty()) {
    way_plan::measurement m;
    m.by = r.take<node_id>();
    m.what.other = r.take<node_id>();
    m.what.network = r.take<std::uint16_t>();
    m.what.latency = r.take<std::uint8_t>();
    m.what.bandwidth = r.take<std::uint8_t>();
    const bool streamed = m.what.bandwidth <= measured_link::step_max;
    if (m.by >= nodes || m.what.other >= nodes || m.by == m.what.other ||
        m.what.network >= measured_link::networks_max || m.what.latency > measured_link::step_max ||
        !(streamed || m.what.bandwidth == measured_link::unknown) ||
        all.size() == way_plan::measured_max)
      throw malformed("what nobody can have measured");
    all.push_back(m);
  }
  return all;
}

writer pack(const way_plan& p) {
  writer out;
  out.add(p.number);
  add_nodes(out, p.members);
  add_nodes(out, p.forwarders);
  out.add(static_cast<std::uint16_t>(p.about_connections.size()));
  for (const auto& [ends, number] : p.about_connections)
    out.add(ends.first).add(ends.second).add(number);
  add_measured(out, p.measured);
  return out;
}

way_plan unpack_plan(reader r, node_id nodes) {
  way_plan p;
  p.number = r.take<std::uint32_t>();
  p.members = take_nodes(r, nodes);
  p.forwarders = take_nodes(r, nodes);
  for (auto left = r.take<std::uint16_t>(); left != 0; --left) {
    const auto a = r.take<node_id>();
    const auto b = r.take<node_id>();
    const auto number = r.take<std::uint32_t>();
    way_plan::words& all = p.about_connections;
    const bool is_next = all.empty() || all.rbegin()->first < way_plan::pair(a, b);
    if (a >= b || b >= nodes || number == 0 || !is_next || all.size() == way_plan::cuts_max)
      throw malformed("ways over networks that there cannot be");
    all.emplace_hint(all.end(), way_plan::pair(a, b), number);
  }
  p.measured = take_measured(r, nodes);
  return p;
}

}  // namespace strata::cluster

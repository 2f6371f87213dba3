// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/closed_links.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "os/topology.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

// In one line.
constexpr std::size_t closed_named_max = 4;

}  // namespace

closed_links::closed_links(launch::control_line& line, const std::vector<part>& parts)
    : line_(line), job_(line.job()), parts_(parts) {}

void closed_links::expect(const reach& who) {
  for (unsigned n = 0; n < job_.capacity; ++n) {
    first_.push_back(who.network(job_.node, static_cast<node_id>(n)));
    spare_.push_back(who.spare_network(job_.node, static_cast<node_id>(n)));
  }
}

void closed_links::find(const std::vector<connected>& all, which w) {
  const by_node& networks = this->networks(w);
  for (unsigned n = 0; n < job_.capacity; ++n) {
    const auto node = static_cast<node_id>(n);
    if (!networks[n] || n == job_.node) continue;
    const auto over = std::find_if(parts_.begin(), parts_.end(),
                                   [&](const part& p) { return p.serves(networks[n]); });
    const connected& c = all[static_cast<std::size_t>(over - parts_.begin())];
    if (c.reaches(node)) continue;
    const auto [lower, higher] = std::minmax(job_.node, node);
    found_.push_back({lower, higher, *networks[n]});
    if (std::string& why = why_[*networks[n]]; why.empty()) why = c.trouble_with(node);
  }
}

void closed_links::agree(std::vector<connected>& all, which w) {
  told_ = line_.share_closed(found_);
  found_.clear();
  const by_node& networks = this->networks(w);
  const auto is_closed_to = [&](node_id n) {
    const std::pair<node_id, node_id> ends = std::minmax(job_.node, n);
    return std::any_of(told_.begin(), told_.end(), [&](const launch::closed_link& l) {
      return std::pair(l.lower, l.higher) == ends && networks[n] == l.network;
    });
  };
  for (connected& c : all) {
    c.leave_alone();
    // Over UDP and UCX that is heard once. A spare connection may be missing. A first one that was
    // found closed by its other end has ended here for that; of another nobody has told.
    for (const ended_connection& e : c.ended()) {
      if (w == which::first && !is_closed_to(e.node))
        throw error("node " + std::to_string(e.node) + " is lost: " + e.why);
      c.drop(e.node);
    }
  }
  for (const launch::closed_link& l : told_) {
    if (l.lower != job_.node && l.higher != job_.node) continue;
    const node_id other = l.lower == job_.node ? l.higher : l.lower;
    if (other >= job_.capacity || networks[other] != l.network) continue;
    for (connected& c : all) c.drop(other);
  }
}

void closed_links::complain(const routes& ways,
                            const std::vector<launch::named_network>& networks) const {
  if (const auto out = ways.unreachable(job_.nodes, job_.left)) {
    std::string closed;
    for (std::size_t i = 0; i < std::min(told_.size(), closed_named_max); ++i)
      closed += (i == 0 ? ": nodes " : "; nodes ") + std::to_string(told_[i].lower) + " and " +
                std::to_string(told_[i].higher) + " could not connect over " +
                networks.at(told_[i].network).words;
    if (told_.size() > closed_named_max)
      closed += "; and " + std::to_string(told_.size() - closed_named_max) + " more";
    throw error("no way leads from node " + std::to_string(job_.node) + " to node " +
                std::to_string(*out) + closed + " (does a packet filter stand between?)");
  }
  // Said by the higher of both ends: once is enough.
  std::map<std::uint16_t, std::vector<int>> nodes;  // by network
  for (const launch::closed_link& c : told_) {
    if (c.higher == job_.node) nodes[c.network].push_back(c.lower);
  }
  for (const auto& [network, others] : nodes) {
    const auto found = why_.find(network);
    const std::string why =
        found != why_.end() && !found->second.empty() ? " (" + found->second + ")" : "";
    std::fprintf(stderr,
                 "strata: node %u cannot connect to node%s %s over %s%s; messages go other ways\n",
                 unsigned{job_.node}, others.size() == 1 ? "" : "s", os::to_ranges(others).c_str(),
                 networks.at(network).words.c_str(), why.c_str());
  }
}

}  // namespace strata::cluster

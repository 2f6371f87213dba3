// SPDX-License-Identifier: Apache-2.0
// Where nodes share several networks: over which of them two connect, what those cost, and by which
// ways messages go then.
#include <algorithm>
#include <string>
#include <utility>

#include "cluster/opening/opening.hpp"
#include "cluster/opening/surveyor.hpp"
#include "cluster/ways/link_costs.hpp"
#include "cluster/ways/survey.hpp"
#include "cluster/ways/way_plan.hpp"
#include "cluster/words/codec.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

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

}  // namespace

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

}  // namespace strata::cluster

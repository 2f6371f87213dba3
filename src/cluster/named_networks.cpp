// SPDX-License-Identifier: Apache-2.0
#include "cluster/named_networks.hpp"

#include <algorithm>
#include <utility>

#include "strata/error.hpp"

namespace strata::cluster {

named_networks::named_networks(mailer& mail, const membership& members, links& l, const clock& time,
                               const beginning& b, ground& g)
    : mail_(mail),
      ground_(g),
      members_(members),
      links_(l),
      time_(time),
      self_(mail.self()),
      nodes_(mail.nodes()),
      told_(b.told),
      told_since_(b.plan.measured),
      rerouting_(mail, b.plan, *this),
      detours_(self_, nodes_, b.plan.about_connections, *this),
      remeasuring_(mail, *this, costs_at_first(), b.remeasure_every_ns, time.now_ns()) {
  for (unsigned i = 0; i < nodes_; ++i) {
    const auto n = static_cast<node_id>(i);
    if (n != self_) change_way(n, rerouting_.to(n).next, b.plan.number, false);
  }
  cluster::mending::hands& seams = *this;  // which std::optional could not see
  if (b.mends) mending_.emplace(self_, *b.mends, seams, time.now_ns());
}

bool named_networks::on_message(node_id from, kind k, reader r) {
  if (k == kind::confirmed) {
    const auto come = r.take<std::uint64_t>();
    r.end();
    if (mending_ && comes_by_spare(from)) mending_->heard_by_spare(from);
    links_.on_confirmed(from, come);
    return true;
  }
  return rerouting_.on_message(from, k, r) || detours_.on_message(from, k, r) ||
         remeasuring_.on_message(from, k, r, time_.now_ns());
}

void named_networks::on_left(node_id n) {
  if (mending_) mending_->forget(n);
  // One that waits for its word would stay open; those that are about to begin with it do.
  if (!detours_.is_undecided(n)) {
    detours_.forget_new(n);
    reopened_.erase(n);
  }
  detours_.on_left(n);
  // Where it was stays known: what others have said to it last may still have to go by here.
  rerouting_.on_left(n);
}

void named_networks::stop() {
  remeasuring_.stop();
  rerouting_.stop();
}

void named_networks::give_up() {
  rerouting_.give_up();
  remeasuring_.stop();
}

// ---- ways ----

routes named_networks::ways_from(node_id n, const way_plan& p) const {
  return p.ways(n, nodes_, [this](node_id a, node_id b) { return ground_.cost(a, b); });
}

routes named_networks::ways_by(const way_plan& p) {
  if (p.measured != told_since_) {
    try {
      ground_.set_costs(costs_with(p.measured));
    } catch (const error& e) {
      throw malformed(e.what());
    }
    told_since_ = p.measured;
  }
  return ways_from(self_, p);
}

routes named_networks::ways_without(node_id n, const std::set<cluster::detours::pair>& cuts) {
  way_plan p = rerouting_.plan();
  // What is known of connections may be newer than the plan.
  p.about_connections.clear();
  for (const cluster::detours::pair& ends : cuts) p.about_connections[ends] = 1;
  return ways_from(n, p);
}

// A comer's connection may be on its way.
bool named_networks::has_connections_for(const routes& ways) {
  const std::vector<node_id> all = members_.all();
  return std::none_of(all.begin(), all.end(), [&](node_id n) {
    return n != self_ && ways.is_neighbour(n) && links_.way_to(n) == nullptr;
  });
}

void named_networks::change_way(node_id n, node_id next, std::uint32_t table, bool says_so) {
  links_.change_way(n, next, table,
                    says_so ? std::as_bytes(std::span(&table, 1)) : std::span<const std::byte>{});
}

void named_networks::on_word(const cluster::detours::pair& ends, std::uint32_t number) {
  if (self_ == 0) rerouting_.on_word(ends, number);
}

// ---- costs ----

link_costs named_networks::costs_with(const std::vector<way_plan::measurement>& newer) const {
  std::vector<std::uint16_t> hosts(nodes_);
  for (unsigned n = 0; n < nodes_; ++n) hosts[n] = ground_.host(static_cast<node_id>(n));
  return {with_newer(told_, newer, hosts), hosts};
}

// Node 0 believes them.
believed_costs named_networks::costs_at_first() const {
  believed_costs costs([this](node_id n) { return ground_.host(n); });
  for (std::size_t n = 0; self_ == 0 && n < told_.size(); ++n) {
    for (const launch::measured_link& m : told_[n]) costs.begin_with({static_cast<node_id>(n), m});
  }
  return costs;
}

std::vector<node_id> named_networks::measured_here() {
  return ground_.measured_here(
      [this](node_id n) { return members_.has(n) && !detours_.is_cut(n); });
}

void named_networks::on_costs(std::vector<way_plan::measurement> changed) {
  try {
    (void)costs_with(changed);
  } catch (const error&) {
    return;  // more hosts than are measured
  }
  rerouting_.set_costs(std::move(changed));
}

}  // namespace strata::cluster

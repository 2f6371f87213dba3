// SPDX-License-Identifier: Apache-2.0
// What a simulated node measures, and the ways by which it reaches the others: as engine_ways.cpp.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/simulated_job.hpp"

namespace strata::sim {

// ---- before the job begins ----

void simulated_node::measure() {
  survey_ = std::make_unique<cluster::survey>(*this, measured_here(), job_.in.now_ns(),
                                              cluster::survey::limits{});
  job_.in.at(job_.in.now_ns(), [this] { go_on_measuring(); });
}

void simulated_node::go_on_measuring() {
  if (survey_ == nullptr || has_measured_ || crashed_) return;
  const std::int64_t next_ns = survey_->go_on(job_.in.now_ns());
  if (!survey_->is_done()) return job_.in.at(next_ns, [this] { go_on_measuring(); });
  has_measured_ = true;
  std::vector<launch::measured_link> all;
  for (const cluster::survey::result& r : survey_->results()) all.push_back(r.over(0));
  job_.measured(self_, std::move(all));
}

bool simulated_node::try_post(node_id to, cluster::kind k, std::span<const std::byte> head,
                              std::span<const std::byte> body) {
  const auto outcome = first_.try_send(to, cluster::header_of(self_, to, k), head, body);
  return outcome == net::send_outcome::sent || outcome == net::send_outcome::staged;
}

void simulated_node::begin() {
  make_links();
  begin_to_reroute();
  survey_.reset();
  --job_.beginnings_;
  for (const auto& [h, payload] : std::exchange(early_, {})) on_message(h, payload);
  protocols.balance.want_work();
}

// ---- other ways ----

void simulated_node::begin_to_reroute() {
  rerouting.emplace(*this, job_.plan_, *this);
  detours.emplace(self_, nodes(), job_.plan_.about_connections, *this);
  if (job_.model.mends_after_ns != 0) {
    const cluster::mending::settings pauses{job_.model.mends_after_ns, job_.model.mends_every_ns,
                                            job_.model.mends_every_ns};
    mending.emplace(self_, pauses, *this, job_.in.now_ns());
    mend();
  }
  for (unsigned i = 0; i < nodes(); ++i) {
    const auto n = static_cast<node_id>(i);
    if (n != self_) links_->change_way(n, rerouting->to(n).next, job_.plan_.number, {});
  }
  if (job_.model.measures_again_ns == 0) return;
  cluster::believed_costs costs([](node_id n) { return n; });
  for (std::size_t n = 0; n < job_.measured_.size(); ++n) {
    for (const launch::measured_link& m : job_.measured_[n])
      costs.begin_with({static_cast<node_id>(n), m});
  }
  remeasuring.emplace(*this, *this, std::move(costs), job_.model.measures_again_ns,
                      job_.in.now_ns());
  measure_again();
}

void simulated_node::measure_again() {
  if (parted_ || crashed_) return;
  (void)remeasuring->on_time(job_.in.now_ns());
  job_.in.at(job_.in.now_ns() + 500'000, [this] { measure_again(); });
}

std::vector<node_id> simulated_node::measured_here() {
  std::vector<node_id> others;
  for (const node_id other : members_.all()) {
    const bool is_cut = detours && detours->is_cut(other);
    if (cluster::measures(self_, other) && job_.model.links(self_, other) && !is_cut)
      others.push_back(other);
  }
  return others;
}

std::optional<std::uint16_t> simulated_node::network_to(node_id n) {
  return members_.has(n) ? std::optional<std::uint16_t>(0) : std::nullopt;
}

cluster::routes simulated_node::ways_by(const cluster::way_plan& p) { return ways_of(self_, p); }

cluster::routes simulated_node::ways_of(node_id n, const cluster::way_plan& p) {
  const cluster::link_costs costs(cluster::with_newer(job_.measured_, p.measured, job_.host_of_),
                                  job_.host_of_);
  return p.ways(n, nodes(), [&](node_id a, node_id b) -> std::optional<cluster::link> {
    const auto nominal = known_[a] && known_[b] ? job_.model.links(a, b) : std::nullopt;
    const auto measured = costs.between(a, b, 0);
    return nominal && measured ? measured : nominal;
  });
}

void simulated_node::change_way(node_id n, node_id next, std::uint32_t table, bool says_so) {
  links_->change_way(n, next, table,
                     says_so ? std::as_bytes(std::span(&table, 1)) : std::span<const std::byte>{});
}

void simulated_node::on_kept(node_id n, cluster::kind k, std::span<const std::byte> payload) {
  receive(n, k, payload);
}

void simulated_node::on_changed(const cluster::way_plan& p) { job_.plan_ = p; }

void simulated_node::let_come(node_id n) { job_.let_in(n); }

}  // namespace strata::sim

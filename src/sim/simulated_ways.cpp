// SPDX-License-Identifier: Apache-2.0
// What a simulated node measures, and the ways by which it reaches the others.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/ways/reach.hpp"
#include "sim/simulated_job.hpp"

namespace strata::sim {

// ---- before the job begins ----

void simulated_node::measure() {
  survey_ = std::make_unique<cluster::survey>(*this, measured_here([](node_id) { return true; }),
                                              job_.in.now_ns(), cluster::survey::limits{});
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
  cluster::named_networks::beginning b{.plan = job_.plan_,
                                       .told = job_.measured_,
                                       .remeasure_every_ns = job_.model.measures_again_ns};
  if (job_.model.mends_after_ns != 0)
    b.mends = cluster::mending::settings{job_.model.mends_after_ns, job_.model.mends_every_ns,
                                         job_.model.mends_every_ns};
  networks.emplace(*this, members_, *links_, job_.in, b, *this);
  // Not before: what it says goes by the ways that all others have. A comer may have none, and
  // ends.
  const bool has_ways = !networks->rerouting().ways()->unreachable(self_, job_.left_);
  if (job_.model.lost_after_ns != 0 && has_ways) beat();
  if (b.mends) mend();
  if (job_.model.measures_again_ns != 0) measure_again();
}

void simulated_node::measure_again() {
  if (parted_ || crashed_) return;
  (void)networks->measure(job_.in.now_ns());
  job_.in.at(job_.in.now_ns() + 500'000, [this] { measure_again(); });
}

std::vector<node_id> simulated_node::measured_here(const std::function<bool(node_id)>& counts) {
  std::vector<node_id> all = members_.all();
  std::erase_if(all, [&](node_id n) { return !counts(n); });
  all = cluster::firsts_of_hosts(all, [this](node_id n) { return host(n); });
  if (std::find(all.begin(), all.end(), self_) == all.end()) return {};
  std::erase_if(all, [this](node_id n) {
    return !cluster::measures(self_, n) || !job_.model.links(self_, n);
  });
  return all;
}

std::optional<cluster::link> simulated_node::cost(node_id a, node_id b) const {
  const auto nominal = known_[a] && known_[b] ? job_.model.links(a, b) : std::nullopt;
  const auto measured = costs_.between(host(a), host(b), 0);
  return nominal && measured ? measured : nominal;
}

void simulated_node::on_changed(const cluster::way_plan& p) { job_.plan_ = p; }

void simulated_node::let_come(node_id n) { job_.let_in(n); }

}  // namespace strata::sim

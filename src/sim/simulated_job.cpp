// SPDX-License-Identifier: Apache-2.0
// What a simulated job has in place of a launcher and of several processes: it makes its nodes, and
// has one change of them happen at a time.
#include "sim/simulated_job.hpp"

#include <memory>
#include <numeric>
#include <utility>

#include "sched/scheduler.hpp"

namespace strata::sim {
namespace {

options one_quiet_worker(std::size_t stack_bytes) {
  options o;
  o.workers = 1;
  o.bind = false;
  // Its worker is not woken by what becomes ready on simulated ones.
  o.policy = "locked";
  o.stack_bytes = stack_bytes;
  return o;
}

std::unique_ptr<wires> wires_of(world& w, const job_model& m) {
  return std::make_unique<wires>(
      w, wires::settings{.channel = m.channel,
                         .credits_bytes = m.credits_bytes,
                         .staged_ns = m.staged_ns,
                         .may_break = m.links != nullptr,
                         .tells_of_ends = m.tells_of_ends && m.mends_after_ns != 0});
}

}  // namespace

job::job(world& w, const job_model& m)
    : in(w),
      model(m),
      wires_{wires_of(w, m), m.spares ? wires_of(w, m) : nullptr},
      host_of_(m.hosts),
      plan_(cluster::first_plan(m.founders != 0 ? m.founders : m.nodes)),
      frames_(std::make_unique<detail::scheduler>(one_quiet_worker(m.stack_bytes))) {
  frames_->deadlines.go_by(*this);
  if (host_of_.empty()) {
    host_of_.resize(m.nodes);
    std::iota(host_of_.begin(), host_of_.end(), std::uint16_t{0});
  }
  for (unsigned n = 0; n < plan_.members.size(); ++n)
    nodes_.push_back(std::make_unique<simulated_node>(*this, static_cast<node_id>(n)));
  if (m.measures) {
    measuring_ = beginnings_ = nodes_.size();
    measured_.resize(nodes_.size());
    for (auto& n : nodes_) n->measure();
    return;
  }
  for (auto& n : nodes_) n->make_links();
  if (m.links) {
    for (auto& n : nodes_) n->begin_to_reroute();
  }
  // Everybody begins with nothing to do.
  for (auto& n : nodes_) n->protocols.balance.want_work();
}

job::~job() = default;

// The launcher tells all, who hear it one after the other.
void job::measured(node_id n, std::vector<launch::measured_link> what) {
  measured_[n] = std::move(what);
  if (--measuring_ != 0) return;
  for (const auto& node : nodes_) {
    const auto takes_ns = static_cast<std::int64_t>(in.random.below(200'000));
    in.at(in.now_ns() + takes_ns, [node = node.get()] { node->begin(); });
  }
}

// ---- nodes that come and go ----

void job::change(std::function<void()> begin) {
  changes_.push_back(std::move(begin));
  if (changes_.size() == 1) changes_.front()();
}

void job::changed() {
  changes_.pop_front();
  if (!changes_.empty()) changes_.front()();
}

void job::come(std::function<void(node_id)> done, std::function<void(node_id)> refused) {
  change([this, done = std::move(done), refused = std::move(refused)] {
    const auto n = static_cast<node_id>(nodes_.size());
    for (const auto& member : nodes_) {
      if (!member->parted_) member->expect(n);
    }
    when_done_[n] = [this, done, n] {
      changed();
      done(n);
    };
    when_refused_[n] = [this, refused, n] {
      changed();
      if (refused) refused(n);
    };
    model.links ? node(0).networks->rerouting().ask_to_let_come(n) : let_in(n);
  });
}

void job::let_in(node_id n) {
  nodes_.push_back(std::make_unique<simulated_node>(*this, n));
  node(n).make_links();
  if (when_made) when_made(n);
  if (model.links) {
    node(n).begin_to_reroute();
    if (node(n).networks->rerouting().ways()->unreachable(n, left_)) return refuse(n);
  }
  in.at(in.now_ns() + 100'000, [this, n] {
    if (node(n).parted_) return;
    if (node(n).crashed_) return refuse(n);
    node(n).membership_protocol.come();
  });
}

// Its process ends with an error, and the launcher says so to those who know it.
void job::refuse(node_id n) {
  left_.push_back(n);
  node(n).parted_ = true;
  in.at(in.now_ns() + 100'000, [this, n] {
    for (const auto& member : nodes_) {
      if (!member->parted_ && !member->crashed_) member->lose(n, "ended while it came");
    }
    std::exchange(when_refused_[n], nullptr)();
  });
}

void job::leave(node_id n, std::function<void()> done, std::function<void()> refused) {
  when_done_[n] = [this, done = std::move(done)] {
    changed();
    done();
  };
  when_refused_[n] = std::move(refused);
  if (!node(n).networks) return node(n).begin_to_leave();
  node(n).networks->rerouting().ask_to_be_spared();
}

}  // namespace strata::sim

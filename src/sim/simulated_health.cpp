// SPDX-License-Identifier: Apache-2.0
// A simulated node that watches for losses and stalls, and what it does about them: as
// cluster/engine/health.cpp. And how it crashes.
#include <exception>
#include <string>

#include "sim/simulated_job.hpp"

namespace strata::sim {

void simulated_node::crash() {
  crashed_ = true;
  first_.crash();
  if (second_) second_->crash();
  if (threads_ == 0 && stacks_.empty()) return;
  ends_threads_ = true;
  break_off(std::make_exception_ptr(node_lost_error(self_, "has crashed")));
}

void simulated_node::beat() {
  if (crashed_ || parted_) return;
  protocols.life.beat(true);
  if (networks) networks->beat(true);
  job_.in.at(job_.in.now_ns() + protocols.life.beat_ns(), [this] { beat(); });
}

// ---- stalls ----

void simulated_node::look_for_stall() {
  if (crashed_ || parted_) return;
  stalls.on_time();
  // As the engine's receiver, which has other things to do as well.
  const auto late_ns = static_cast<std::int64_t>(
      job_.in.random.below(static_cast<std::uint64_t>(stalls.look_ns() / 4 + 1)));
  job_.in.at(job_.in.now_ns() + stalls.look_ns() / 4 + late_ns, [this] { look_for_stall(); });
}

cluster::stall_watch::observation simulated_node::observe() {
  return {is_still(), tasks_ + protocols.counts.received.load(std::memory_order_relaxed)};
}

cluster::stall_watch::waits simulated_node::who_waits_here() {
  using waits = cluster::stall_watch::waits;
  bool for_others = protocols.data.awaits_something() || !messenger.describe_waits().empty();
  for (const auto& [what, for_the_world] : waiting) {
    if (for_the_world) return waits::for_the_world;
    for_others = true;
  }
  return for_others ? waits::for_others : waits::for_nothing;
}

std::string simulated_node::describe_waits_here() {
  std::string text = "strata: node " + std::to_string(self_) + "\n";
  for (const auto& [what, for_the_world] : waiting) text += "  a thread waits for " + what + "\n";
  return text + protocols.data.describe_waits() + messenger.describe_waits() +
         links_->describe_waits();
}

// As the engine's receiver, when it has dealt with what has come.
void simulated_node::answer_soon() {
  const auto late_ns = static_cast<std::int64_t>(
      job_.in.random.below(static_cast<std::uint64_t>(job_.model.stalls_after_ns / 32 + 1)));
  job_.in.at(job_.in.now_ns() + late_ns, [this] {
    if (!crashed_ && !parted_) stalls.send_answer();
  });
}

void simulated_node::tell_of_stall(const std::string& report) {
  if (job_.when_stalled) job_.when_stalled(report);
}

void simulated_node::lose(node_id node, const std::string& why) {
  const bool is_none = membership_protocol.is_no_loss(node);
  if (members_.of(node) == cluster::standing::left) links_->on_lost(node);
  if (!is_none) believe_loss(node, why);
}

void simulated_node::believe_loss(node_id node, const std::string& why) {
  if (!membership_protocol.on_lost(node)) break_job(node, why);
}

void simulated_node::break_job(node_id node, const std::string& why) {
  links_->on_lost(node);
  if (members_.of(node) == cluster::standing::left || !losses_.emplace(node, why).second) return;
  if (members_.of(self_) == cluster::standing::coming) {
    if (!parted_) job_.refuse(self_);
    return;
  }
  links_->stop_waiting();
  stalls.stop();
  protocols.balance.on_lost(node);
  protocols.life.tell(node, why);
  transfers.lose(node);
  if (job_.model.breaks_off) break_off(std::make_exception_ptr(node_lost_error(node, why)));
}

void simulated_node::break_off(const std::exception_ptr& loss) {
  const as_its_worker here(*this);
  broken_ = true;
  if (networks) networks->give_up();
  protocols.data.lose(loss);
  messenger.on_lost(loss);
}

}  // namespace strata::sim

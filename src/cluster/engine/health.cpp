// SPDX-License-Identifier: Apache-2.0
// When something goes wrong: a node is lost, a computation fails, or nothing moves any more.
#include <cstdio>
#include <string>

#include "cluster/engine/engine.hpp"
#include "os/clock.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

// ---- lost nodes ----

void engine::on_lost(node_id peer, const std::string& why) {
  if (networks_ != nullptr) return networks_->on_lost(peer, why);
  if (ways_.to(peer).next == peer) cannot_reach(peer, why);
}

void engine::lose(node_id peer, const std::string& why) {
  if (!is_no_loss(peer)) believe_loss(peer, why);
}

// Once this node has left nobody beats for it any more.
void engine::believe_loss(node_id peer, const std::string& why) {
  if (!membership_protocol_->on_lost(peer)) break_job(peer, why);
}

void engine::cannot_reach(node_id peer, const std::string& why) {
  if (is_no_loss(peer) || membership_protocol_->on_lost(peer)) return;
  if (is_over() || !line_->tells_of_losses() || departures_.has_gone(peer))
    return break_job(peer, why);
  links_->on_lost(peer);
  suspected_.add({peer, why}, now_ns());
  wake_timekeeper();
}

std::int64_t engine::look_after_suspicions() {
  const std::int64_t due_ns = suspected_.due_ns();
  if (due_ns == INT64_MAX) return due_ns;
  const std::int64_t left_ns = due_ns - now_ns();
  if (left_ns > 0 && !is_over()) return left_ns;
  const std::lock_guard handling(inbox_);
  for (const suspicions::suspect& s : suspected_.take()) lose(s.node, s.why);
  return INT64_MAX;
}

void engine::break_job(node_id peer, const std::string& why) {
  links_->on_lost(peer);
  const bool on_purpose = !departures_.add(peer);
  if (on_purpose || stopping_.load(std::memory_order_seq_cst)) return;
  if (!broken_.load(std::memory_order_seq_cst)) {
    broken_by_ = peer;
    loss_ = std::make_exception_ptr(
        node_lost_error(peer, "node " + std::to_string(peer) + " is lost: " + why));
  }
  protocols_->failed.keep_silent();
  stalls_->stop();
  if (broken_.exchange(true, std::memory_order_seq_cst)) return;
  // Nobody waits for them either.
  for (const suspicions::suspect& s : suspected_.take()) break_job(s.node, s.why);
  links_->stop_waiting();
  if (networks_ != nullptr) networks_->give_up();
  protocols_->balance.on_lost(peer);
  protocols_->life.tell(peer, why);
  // Where its process lives, or the launcher has not counted it yet, nobody else tells: what the
  // program does here may wait for that node, or end this process as soon as it hears.
  line_->tell_loss(peer, why);
  workers_.fail(loss_);
  protocols_->data.lose(loss_);
  protocols_->visitor->on_lost(loss_);
  // Node 0 tells the program. Here what is left is given up in silence, whoever it was for.
  if (self_ != 0) (void)workers_.take_failure();
  workers_.settle(false);
  if (self_ != 0) return departures_.end(departures::cause::lost);
  departures_.look_again();
}

// ---- stalls ----

void engine::request_report() noexcept {
  report_wanted_.store(true, std::memory_order_release);
  wake_timekeeper();
}

// By whoever keeps the time: a signal has asked for it.
void engine::report_everywhere() {
  print_report_once();
  const std::lock_guard handling(inbox_);
  broadcast(kind::report, {});
}

// A signal that reaches all nodes of a job makes each of them ask all others.
void engine::print_report_once() {
  constexpr std::int64_t once_ns = 1'000'000'000;
  std::int64_t before = reported_at_.load(std::memory_order_relaxed);
  const std::int64_t now = os::now_ns();
  if (now - before >= once_ns &&
      reported_at_.compare_exchange_strong(before, now, std::memory_order_relaxed)) {
    // One write, so that the reports of several nodes are not mixed.
    std::fputs(describe_waits_here().c_str(), stderr);
  }
}

std::string engine::describe_waits_here() {
  return "strata: " + describe() + "\n" + workers_.describe_waits() +
         protocols_->data.describe_waits() + protocols_->visitor->describe_waits() +
         links_->describe_waits();
}

stall_watch::observation engine::observe() {
  const worker_statistics done = workers_.read_statistics().total();
  return {.is_idle = workers_.is_idle(detail::scheduler::waits::for_times),
          .progress = done.activations + done.fibers + done.dispatched + done.resumptions +
                      protocols_->counts.received.load(std::memory_order_relaxed)};
}

// Not who waits in a job to which nodes may come: those may bring what threads wait for.
stall_watch::waits engine::who_waits_here() {
  if (is_over()) return stall_watch::waits::for_nothing;
  if (workers_.somebody_waits()) return stall_watch::waits::for_fibers;
  const detail::waiting_stacks found = workers_.who_waits();
  if (found.for_the_world != 0) return stall_watch::waits::for_the_world;
  return found.for_others != 0 && !members_.is_elastic() ? stall_watch::waits::for_others
                                                         : stall_watch::waits::for_nothing;
}

// The handler holds the inbox.
void engine::answer_soon() {
  answer_wanted_.store(true, std::memory_order_release);
  wake_timekeeper();
}

void engine::tell_of_stall(const std::string& report) {
  // One write, so that the reports of several jobs are not mixed.
  std::fputs(report.c_str(), stderr);
}

void engine::keep_in_touch() {
  if (stopping_.load(std::memory_order_acquire)) return;
  const std::lock_guard handling(inbox_);
  // With polling a worker that computes hears nobody, so only who has looked can say who is silent.
  const bool polled = polled_since_beat_.exchange(false, std::memory_order_relaxed);
  const bool listening = rules_.how() != reception::polling || polled || workers_.all_sleep();
  protocols_->life.beat(listening);
  if (is_over()) return;
  if (networks_ != nullptr) return networks_->beat(listening);
  // The ring knows only of neighbours in it, and whether they live; two others may reach each other
  // no more. Where networks are named, detours see to that.
  for (const auto& t : transports_)
    t->look_for_silence(*this, now_ns(), std::int64_t{settings_.lost_after_ms} * 1'000'000);
}

// ---- failed computations ----

void engine::computation_failed(const std::exception_ptr& error) noexcept {
  // After a loss nobody is told, and nothing moves.
  if (!protocols_->failed.tell(error) && !broken_.load(std::memory_order_seq_cst)) return;
  // Not here: the failure's lock is held.
  settle_wanted_.store(true, std::memory_order_release);
  wake_timekeeper();
}

}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// When something goes wrong: a node is lost, a computation fails, or nothing moves any more.
#include <algorithm>
#include <cstdio>
#include <string>

#include "cluster/engine.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

// ---- lost nodes ----

void engine::lose(node_id peer, const std::string& why) {
  if (!is_no_loss(peer) && !roster_->on_lost(peer)) break_job(peer, why);
}

void engine::break_job(node_id peer, const std::string& why) {
  links_->on_lost(peer);
  {
    const std::lock_guard lock(ending_mutex_);
    const bool on_purpose = gone_[peer];
    gone_[peer] = true;
    ended_.notify_all();
    if (on_purpose || stopping_.load(std::memory_order_seq_cst)) return;
  }
  protocols_->failed.keep_silent();
  if (broken_.exchange(true, std::memory_order_seq_cst)) return;
  links_->stop_holding();
  if (rerouting_ != nullptr) {
    rerouting_->give_up();
    remeasuring_->stop();
  }
  protocols_->balance.on_lost(peer);
  protocols_->life.tell(peer, why);
  const std::exception_ptr lost = std::make_exception_ptr(
      node_lost_error(peer, "node " + std::to_string(peer) + " is lost: " + why));
  workers_.fail(lost);
  protocols_->data.lose_calls(lost);
  protocols_->visitor->on_lost(lost);
  // Node 0 tells the program. Here what is left is given up in silence, whoever it was for.
  if (self_ != 0) (void)workers_.take_failure();
  workers_.settle(false);
  if (self_ != 0) return end(ending::lost);
  if (members_.is_elastic()) line_->say(launch::word_to_launcher::missed, peer);
  const std::lock_guard lock(ending_mutex_);
  ended_.notify_all();
}

// ---- stalls ----

void engine::request_report() noexcept {
  report_wanted_.store(true, std::memory_order_release);
  if (!transports_.empty()) wake_timekeeper();
}

void engine::print_report() {
  const std::string text = "strata: " + describe() + "\n" + workers_.describe_waits() +
                           protocols_->data.describe_waits() +
                           protocols_->visitor->describe_waits() + links_->describe_waits();
  // One write, so that the reports of several nodes are not mixed.
  std::fputs(text.c_str(), stderr);
}

// On node 0: nothing moves anywhere, and yet somebody waits.
void engine::look_for_stall() {
  if (self_ != 0 || settings_.stall_s == 0) return;
  const std::uint64_t progress = workers_.read_statistics().total().fibers +
                                 protocols_->counts.received.load(std::memory_order_relaxed);
  const std::int64_t now = os::now_ns();
  stall seen = stall::told;
  if (progress != progress_seen_) stall_.compare_exchange_strong(seen, stall::none);
  if (progress != progress_seen_ || !workers_.is_idle() || !workers_.somebody_waits()) {
    progress_seen_ = progress;
    progress_at_ = now;
    return;
  }
  if (now - progress_at_ < std::int64_t{settings_.stall_s} * 1'000'000'000 ||
      !stall_.compare_exchange_strong(seen = stall::none, stall::suspected)) {
    return;
  }
  // Others may be working. When they are not, this is called.
  protocols_->quiet.detect([this] {
    if (!workers_.somebody_waits() || stopping_.load(std::memory_order_acquire)) {
      stall_.store(stall::none);
      return;
    }
    stall_.store(stall::told);  // once, and again only after progress
    std::fputs(
        "strata: nothing moves on any node any more, and a task waits for what will not come:\n",
        stderr);
    print_report();
    broadcast(kind::report, {});
  });
}

void engine::keep_in_touch() {
  if (stopping_.load(std::memory_order_acquire)) return;
  const std::lock_guard handling(inbox_);
  const bool listening = reception_ != reception::polling || workers_.all_sleep();
  protocols_->life.beat(listening);
  if (detours_ != nullptr && !is_over()) look_after_connections(listening);
}

bool engine::everybody_is_gone() {
  const std::lock_guard lock(ending_mutex_);
  // Only node 0 and gateways wait for the others, who may go as soon as they have said so.
  if ((self_ != 0 && !is_gateway_) || gave_up_waiting_) return true;
  const std::vector<node_id> awaited = others();
  return std::all_of(awaited.begin(), awaited.end(),
                     [this](node_id n) { return n == 0 || gone_[n]; });
}

// ---- failed computations ----

void engine::computation_failed(const std::exception_ptr& error) noexcept {
  if (!protocols_->failed.tell(error)) return;
  // Not here: the failure's lock is held.
  settle_wanted_.store(true, std::memory_order_release);
  wake_timekeeper();
}

}  // namespace strata::cluster

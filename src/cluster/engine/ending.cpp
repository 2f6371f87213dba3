// SPDX-License-Identifier: Apache-2.0
// How the job ends: node 0 waits until all is quiet and says so, the others work until they hear
// it, and nobody closes a connection in which something is unread.
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/engine/engine.hpp"

namespace strata::cluster {
namespace {

constexpr auto goodbye_limit = std::chrono::seconds(2);
constexpr auto linger_limit = std::chrono::seconds(1);

}  // namespace

void engine::wait_until_quiet() {
  if (becomes_quiet()) return;
  {
    // A loss has been dealt with in full: until then it is no failure yet. Partner: break_job().
    const std::lock_guard handling(inbox_);
    (void)workers_.take_failure();  // which is told herewith
  }
  std::rethrow_exception(loss_);
}

bool engine::becomes_quiet() {
  if (broken_.load(std::memory_order_seq_cst)) return false;
  // Shared, because a lost node ends the waiting, but not the protocol's hold on what it calls.
  const auto quiet = std::make_shared<bool>(false);
  protocols_->quiet.detect([this, quiet] {
    // After a loss nothing moves because it was given up. Partner: break_job(), which says so
    // first.
    departures_.tell(
        [&](departures::known&) { *quiet = !broken_.load(std::memory_order_seq_cst); });
  });
  bool is_quiet = false;
  departures_.wait([&](const departures::known&) {
    is_quiet = *quiet;
    return is_quiet || broken_.load(std::memory_order_seq_cst);
  });
  return is_quiet;
}

void engine::finish() {
  (void)becomes_quiet();
  wait_for_ways();
  {
    // A loss has been dealt with in full, or comes too late to be one. Partner: break_job().
    const std::lock_guard handling(inbox_);
    stopping_.store(true, std::memory_order_seq_cst);
  }
  broadcast(kind::stop, {});
  leave_loss_to_launcher();
  // Whoever closes a connection with something unread in it may destroy what the other has not
  // read yet, so we are the last to go.
  wait_for_goodbyes();
  stop_threads();
}

// A loss of which the program has not been told, because nothing of it ran or waited, would be
// reported with the runtime's end, or by the next run(), which throws it as well when it asks
// another node. One line is enough; but the launcher knows only of processes that end, not of nodes
// that are silent.
void engine::leave_loss_to_launcher() noexcept {
  if (!broken_.load(std::memory_order_seq_cst) || !line_->tells_of_losses() ||
      !workers_.failure.is_untold())
    return;
  if (departures_.wait_for(linger_limit, [this](const departures::known& k) {
        return k.told_lost.contains(broken_by_);
      }))
    (void)workers_.take_failure();
}

void engine::wait_for_goodbyes() {
  departures_.wait_for(goodbye_limit, [this](const departures::known& k) {
    // After a loss they go as they can.
    return broken_.load(std::memory_order_seq_cst) || k.have_gone(others());
  });
  departures_.tell([](departures::known& k) { k.gave_up_waiting = true; });
}

bool engine::everybody_is_gone() {
  // Only node 0 and gateways wait for the others, who may go as soon as they have said so.
  if (self_ != 0 && !is_gateway_) return true;
  return departures_.is(
      [this](const departures::known& k) { return k.gave_up_waiting || k.have_gone(others()); });
}

int engine::serve() {
  using cause = departures::cause;
  cause how = cause::none;
  departures_.wait([&](const departures::known& k) {
    how = k.own;
    return how != cause::none;
  });
  if (how != cause::left) broadcast(kind::goodbye, {});
  if (how == cause::lost) linger();
  stopping_.store(true, std::memory_order_seq_cst);
  // What others still have to say to each other comes by here.
  if (is_gateway_) wait_for_goodbyes();
  // Who has been told of the loss still uses what ends here. Blocking calls may last for ever.
  if (how == cause::lost) workers_.wait_idle(detail::scheduler::waits::for_times);
  stop_threads();
  return how == cause::lost ? 1 : 0;
}

// Until node 0 knows of the loss: a connection that is closed with something unread in it may take
// with it what node 0 has not read yet, and node 0 would believe that this node is the lost one.
void engine::linger() {
  departures_.wait_for(linger_limit, [this](const departures::known& k) {
    return stopping_.load(std::memory_order_seq_cst) || k.gone[0];
  });
}

void engine::stop_threads() {
  stopping_.store(true, std::memory_order_seq_cst);
  if (reopening_ != nullptr) reopening_->stop();
  // After a loss nobody takes what waits for a neighbour that has ended, and memory does not tell
  // that it has.
  links_->stop(broken_.load(std::memory_order_seq_cst)
                   ? std::chrono::nanoseconds(goodbye_limit).count()
                   : net::wait_forever_ns);
  // To who waits there. The launcher is told herewith that this node has done all; else what its
  // process ends with says more.
  if (line_thread_.joinable()) line_->close();
  rouse_receivers();
  for (const auto& t : transports_) {
    t->wake_sender();
    t->wake_receiver();
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  // Before the line's thread, which may wait for the porter.
  if (door_ != nullptr) door_->cancel();
  if (line_thread_.joinable()) line_thread_.join();
  if (porter_.joinable()) porter_.join();
  workers_.leave();
  program_cores_.give_back();
}

}  // namespace strata::cluster

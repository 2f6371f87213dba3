// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine/engine.hpp"

#include <algorithm>

#include "os/clock.hpp"

namespace strata::cluster {

engine::~engine() {
  workers_.count_frames_of(nullptr);
  if (line_thread_.joinable()) stop_threads();
}

std::vector<net::transfers*> engine::all_transfers() {
  std::vector<net::transfers*> all;
  for (const auto& t : transports_) {
    if (net::transfers* const way = t->transfers_of_peers()) all.push_back(way);
  }
  return all;
}

// ---- sending ----

void engine::post(node_id to, kind k, std::span<const std::byte> head,
                  std::span<const std::byte> body) {
  // Acquire: the loss. Partner: break_job().
  if (!broken_.load(std::memory_order_acquire) || k >= kind::failed) {
    if (!links_->is_lost(to) && links_->post(to, k, head, body)) return;
    if (members_.is_elastic() && can_be_kept_back(k)) put_aside(to, copy_of(k, head, body));
    return;
  }
  // What the program was just about to say to another node when that was lost (split_phase throws
  // what it says later) will never be answered. Nobody here waits for what answers another one.
  if (k < kind::steal && k != kind::got && k != kind::returned) {
    workers_.fail(loss_);
    // There is nobody to wait for.
    workers_.settle(false);
  }
}

std::vector<node_id> engine::others() const {
  if (!members_.is_elastic() && networks_ == nullptr) return farthest_first_;
  std::vector<node_id> all = members_.all();
  std::erase(all, self_);
  if (networks_ == nullptr) return all;
  const auto ways = networks_->rerouting().ways();
  std::stable_sort(all.begin(), all.end(),
                   [&ways](node_id a, node_id b) { return ways->to(a).hops > ways->to(b).hops; });
  return all;
}

void engine::broadcast(kind k, std::span<const std::byte> payload) {
  for (const node_id to : retry_without_memory([this] { return others(); })) {
    if (!links_->is_lost(to)) retry_without_memory([&] { links_->post(to, k, payload, {}); });
  }
}

std::int64_t engine::now_ns() const { return os::now_ns(); }

// ---- what the scheduler says ----

void engine::want_work() noexcept {
  if (!is_over()) protocols_->balance.want_work();
}

void engine::begins_token() noexcept {
  if (!is_over()) protocols_->balance.begins_token();
}

// Once a node is lost nobody takes anything any more: what lies on the shelf belongs to what is
// being given up.
detail::task* engine::take(detail::worker& w, detail::next_take& after) noexcept {
  if (is_over()) return nullptr;
  node_id whose = self_;
  try {
    return protocols_->shelf.take(w, whose, after);
  } catch (const malformed& e) {
    lose_neighbour(whose, e);
    return nullptr;
  }
}

bool engine::holds_something() const noexcept {
  return !is_over() && protocols_->shelf.holds_something();
}

void engine::feed(detail::worker& w) noexcept {
  if (broken_.load(std::memory_order_relaxed)) return;
  try {
    protocols_->balance.feed(w);
  } catch (const malformed& e) {
    // Of our own shelf, on which only the nodes of this host can write.
    for (const node_id other : others()) {
      if (links_->way_to(other) == transports_.front().get()) return lose_neighbour(other, e);
    }
  }
}

void engine::lose_neighbour(node_id peer, const malformed& why) noexcept {
  const std::lock_guard handling(inbox_);
  lose(peer, why.what());
}

void engine::node_is_idle() noexcept { protocols_->quiet.node_is_idle(); }

}  // namespace strata::cluster

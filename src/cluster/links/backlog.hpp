// SPDX-License-Identifier: Apache-2.0
// What waits on this node for another one: a queue, in the order in which it is sent; and what is
// kept back, which may not be sent yet, and goes to the queue's end, or to somebody else.
//
// Invariant: bytes() are those of both, with headers. Everything else by one thread at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <deque>
#include <utility>

#include "cluster/words/message_copy.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

class backlog {
 public:
  // Any thread. A hint to whoever does not change it.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

  // ---- the queue ----
  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }
  [[nodiscard]] const message_copy& front() const { return queue_.front(); }
  void push(message_copy m) {
    const std::size_t cost = cost_of(m);
    queue_.push_back(std::move(m));
    add(cost);
  }
  message_copy pop() {
    message_copy m = std::move(queue_.front());
    queue_.pop_front();
    discount(m);
    return m;
  }
  // Before all else. Where it throws, m is still whole.
  void put_in_front(message_copy&& m) {
    const std::size_t cost = cost_of(m);
    queue_.push_front(std::move(m));
    add(cost);
  }

  // ---- what is kept back ----
  [[nodiscard]] bool keeps_any() const noexcept { return !kept_.empty(); }
  void keep(message_copy m) {
    const std::size_t cost = cost_of(m);
    kept_.push_back(std::move(m));
    add(cost);
  }
  [[nodiscard]] std::deque<message_copy> take_kept() {
    std::deque<message_copy> all;  // which takes memory
    all.swap(kept_);
    for (const message_copy& m : all) discount(m);
    return all;
  }
  // Where it throws, some have gone to the queue, and it may be called again for the others.
  void queue_kept() {
    for (; !kept_.empty(); kept_.pop_front()) queue_.push_back(std::move(kept_.front()));
  }

  void clear() noexcept {
    queue_.clear();
    kept_.clear();
    bytes_.store(0, std::memory_order_relaxed);
  }

 private:
  static std::size_t cost_of(const message_copy& m) noexcept {
    return m.payload.size() + sizeof(net::header);
  }
  // One thread at a time changes it: a load and a store do.
  void add(std::size_t cost) noexcept { bytes_.store(bytes() + cost, std::memory_order_relaxed); }
  void discount(const message_copy& m) noexcept {
    bytes_.store(bytes() - cost_of(m), std::memory_order_relaxed);
  }

  std::deque<message_copy> queue_, kept_;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace strata::cluster

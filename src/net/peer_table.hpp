// SPDX-License-Identifier: Apache-2.0
// The other nodes that a transport knows, by number and in the order in which they came; some may
// come while it runs. None is ever taken out: any thread may be about to use it.
//
// Any thread may look. add() is called by one thread at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/wire.hpp"
#include "strata/detail/check.hpp"

namespace strata::net {

template <class Peer>
class peer_table {
 public:
  // Of nodes with numbers below this.
  explicit peer_table(std::size_t numbers) : by_number_(numbers), all_(numbers) {}

  [[nodiscard]] std::size_t numbers() const noexcept { return by_number_.size(); }
  [[nodiscard]] Peer* find(node_id n) const noexcept {
    return n < by_number_.size() ? by_number_[n].load(std::memory_order_acquire) : nullptr;
  }
  [[nodiscard]] Peer& at(node_id n) const {
    Peer* const p = find(n);
    STRATA_CHECK(p != nullptr, n, numbers());
    return *p;
  }
  [[nodiscard]] std::span<const std::unique_ptr<Peer>> all() const noexcept {
    return std::span(all_).first(count_.load(std::memory_order_acquire));
  }

  Peer& add(node_id n, std::unique_ptr<Peer> p) {
    STRATA_CHECK(n < numbers() && find(n) == nullptr, n, numbers());
    const std::size_t count = count_.load(std::memory_order_relaxed);
    all_[count] = std::move(p);
    // Release: what the peer is. Partners: find() and all().
    by_number_[n].store(all_[count].get(), std::memory_order_release);
    count_.store(count + 1, std::memory_order_release);
    return *all_[count];
  }

 private:
  std::vector<std::atomic<Peer*>> by_number_;
  std::vector<std::unique_ptr<Peer>> all_;  // as many as there can be
  std::atomic<std::size_t> count_{0};       // of them
};

}  // namespace strata::net

// SPDX-License-Identifier: Apache-2.0
// Talking to the neighbourhood of a node, which may go meanwhile: it waits until nobody is with it.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

#include "sched/neighbourhood.hpp"

namespace strata::detail {

class neighbourhood_visit;

class visited_neighbourhood {
 public:
  // Release: who finds it there finds what was done before.
  void open(neighbourhood& n) noexcept { there_.store(&n, std::memory_order_release); }
  // Nobody comes to it from now on. Null: there was none.
  neighbourhood* close() noexcept {
    // Seq_cst: whoever visits from now on sees that nobody is there. Partner: neighbourhood_visit.
    return there_.exchange(nullptr, std::memory_order_seq_cst);
  }
  void wait_until_alone() const noexcept {
    while (visitors_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  }
  [[nodiscard]] bool is_open() const noexcept {
    return there_.load(std::memory_order_relaxed) != nullptr;
  }

 private:
  friend neighbourhood_visit;
  std::atomic<neighbourhood*> there_{nullptr};
  std::atomic<std::uint32_t> visitors_{0};
};

// The neighbourhood while it is talked to; false in a job of one node, and once it is gone.
class neighbourhood_visit {
 public:
  explicit neighbourhood_visit(visited_neighbourhood& host) noexcept {
    if (!host.is_open()) return;
    host_ = &host;
    // Announce, then look. Partner: close().
    host.visitors_.fetch_add(1, std::memory_order_seq_cst);
    there_ = host.there_.load(std::memory_order_seq_cst);
  }
  ~neighbourhood_visit() { end(); }
  neighbourhood_visit(const neighbourhood_visit&) = delete;
  neighbourhood_visit& operator=(const neighbourhood_visit&) = delete;
  void end() noexcept {
    if (host_ != nullptr) host_->visitors_.fetch_sub(1, std::memory_order_release);
    host_ = nullptr;
    there_ = nullptr;
  }
  explicit operator bool() const noexcept { return there_ != nullptr; }
  neighbourhood* operator->() const noexcept { return there_; }

 private:
  visited_neighbourhood* host_ = nullptr;
  neighbourhood* there_ = nullptr;
};

}  // namespace strata::detail

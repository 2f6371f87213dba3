// SPDX-License-Identifier: Apache-2.0
// Where the sender thread sleeps until it is needed: staged messages are due, a socket that was
// full takes bytes again, a sender that was refused has room, or somebody calls it.
//
// A burst costs one wake: the first message that is staged rings; from then on the sender sleeps
// towards a deadline, and what is due later than that need not ring.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

#include "net/doorbell.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

class sender_wait {
 public:
  sender_wait();

  // Tells once when the socket takes bytes again. Under the lock of its peer.
  void watch(int fd, std::uint32_t peer);
  void forget(int fd) noexcept;

  // Something was staged and is due then; next_due_ns() knows it already. Any thread.
  void staged(std::int64_t due_ns) noexcept;
  // wait() is to return: room was made for somebody who was refused, or the caller wants so. Any
  // thread.
  void end_wait() noexcept;

  // Sleeps until something is due (next_due_ns() tells when, in os::now_ns()), writable(peer) was
  // called for a watched socket, end_wait() was called, or the time is over. The sender thread's.
  void wait(std::int64_t timeout_ns, const std::function<std::int64_t()>& next_due_ns,
            const std::function<void(std::uint32_t)>& writable);

  [[nodiscard]] std::uint64_t wakes() const noexcept {
    return wakes_.load(std::memory_order_relaxed);
  }

 private:
  void count(bool woken) noexcept {
    if (woken) wakes_.fetch_add(1, std::memory_order_relaxed);
  }

  os::descriptor epoll_;
  doorbell bell_;
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> sleeps_until_ns_{0};  // 0: awake, and looks again before it sleeps
  std::atomic<std::uint64_t> wakes_{0};
};

}  // namespace strata::net::tcp

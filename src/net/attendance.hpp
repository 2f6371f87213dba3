// SPDX-License-Identifier: Apache-2.0
// While a thread polls a descriptor anyway, the one that sleeps in epoll until something comes to
// it is not woken for that: it would find nothing left, and would want the core of whoever polls.
#pragma once
#include <mutex>

namespace strata::net {

class attendance {
 public:
  // `source` is watched by `epoll` for EPOLLIN, with no data; both live longer. Only this changes
  // how.
  attendance(int epoll, int source) noexcept : epoll_(epoll), source_(source) {}

  // Any thread; as many may attend at once as want to.
  void begin() noexcept;
  // What the last one leaves behind wakes the sleeper.
  void end() noexcept;

 private:
  void watch(bool watched) const noexcept;

  const int epoll_, source_;
  std::mutex mutex_;
  unsigned attendants_ = 0;
};

}  // namespace strata::net

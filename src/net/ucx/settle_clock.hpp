// SPDX-License-Identifier: Apache-2.0
// When the sender looks whether UCX holds the end of what it has called sent: a while after that
// was said. In a conversation, in which it is said again and again, the sender is not woken each
// time: it looks when nothing has been said for a while, and every late_ns in any case; where a
// conversation has lasted for that long, no more often from then on. (Each time that it is woken
// takes the core from whoever is talking.)
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

namespace strata::net::ucx {

class settle_clock {
 public:
  static constexpr std::int64_t soon_ns = 1'000'000, late_ns = 8'000'000;

  // Something has been called sent. False: it does not run; start() it, and wake the sender.
  [[nodiscard]] bool goes_on() noexcept {
    again_ = is_running();
    return again_;
  }
  void start(std::int64_t now_ns) noexcept {
    pause_ns_ = soon_ns;
    at_ns_ = now_ns + pause_ns_;
    end_ns_ = now_ns + late_ns;
  }
  // The sender's. True: it is to look now. The clock may run on all the same.
  [[nodiscard]] bool rings(std::int64_t now_ns) noexcept {
    if (!is_running() || now_ns < at_ns_) return false;
    const bool goes_on = std::exchange(again_, false);
    if (goes_on && now_ns < end_ns_) {
      pause_ns_ *= 2;
      at_ns_ = std::min(now_ns + pause_ns_, end_ns_);
      return false;
    }
    // What is said after this look has one of its own.
    at_ns_ = end_ns_ = goes_on ? now_ns + late_ns : never;
    return true;
  }
  [[nodiscard]] bool is_running() const noexcept { return at_ns_ != never; }
  // While it runs.
  [[nodiscard]] std::int64_t until_ns() const noexcept { return at_ns_; }

 private:
  static constexpr std::int64_t never = 0;
  std::int64_t at_ns_ = never, pause_ns_ = soon_ns, end_ns_ = never;
  bool again_ = false;  // since it was set last
};

}  // namespace strata::net::ucx

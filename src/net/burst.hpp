// SPDX-License-Identifier: Apache-2.0
// Whether the messages to one peer come in a burst, so that the next may wait for others and leave
// together with them: when several in a row each came soon after the one before had been sent. The
// first few are sent at once, because waking who sends the rest in time costs as much as sending. A
// request and its reply are no burst: a round trip is longer.
#pragma once
#include <cstdint>

#include "os/clock.hpp"

namespace strata::net {

class burst {
 public:
  // Well below a round trip over loopback (7 us), well above the time between two messages of a
  // loop that sends.
  static constexpr std::int64_t usual_gap_ns = 2'000;
  // How long the first of those that wait does so at most.
  static constexpr std::int64_t usual_deadline_ns = 30'000;

  explicit burst(std::int64_t gap_ns) : gap_ticks_(os::to_ticks(gap_ns)) {}

  // One more is to be sent. True: it is of a burst.
  [[nodiscard]] bool goes_on(std::uint64_t now_ticks) noexcept {
    quick_ = is_over(now_ticks) ? 0 : quick_ + 1;
    return quick_ >= messages_min;
  }
  // It has been sent, or waits.
  void sent(std::uint64_t now_ticks) noexcept { last_ticks_ = now_ticks; }
  // The next one will not be of it. `now_ticks` may be from before the last one.
  [[nodiscard]] bool is_over(std::uint64_t now_ticks) const noexcept {
    return now_ticks >= last_ticks_ + gap_ticks_;
  }

 private:
  static constexpr unsigned messages_min = 3;
  std::uint64_t gap_ticks_;
  std::uint64_t last_ticks_ = 0;
  unsigned quick_ = 0;  // in a row, each soon after the one before
};

}  // namespace strata::net

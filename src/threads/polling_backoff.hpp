// SPDX-License-Identifier: Apache-2.0
// How long one pauses between two looks at what nobody will tell of: twice as long each time, up to
// what somebody who waits still hardly notices.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

namespace strata::detail {

class polling_backoff {
 public:
  // The kernel may call a descriptor ready for what the caller does not look for: an error in its
  // queue, or the room of another addressee. A few looks in vain may be due to others who were
  // faster.
  static constexpr unsigned looks_in_vain = 8;
  static constexpr std::int64_t longest_ns = 2'000'000;

  explicit constexpr polling_backoff(unsigned looks_at_once = 0) noexcept
      : looks_at_once_(looks_at_once), left_(looks_at_once) {}

  // Until the next look; 0: at once.
  [[nodiscard]] std::int64_t next_pause_ns() noexcept {
    if (left_ != 0) {
      --left_;
      return 0;
    }
    return std::exchange(pause_ns_, std::min(2 * pause_ns_, longest_ns));
  }
  // A look was not in vain.
  void begin_anew() noexcept { *this = polling_backoff(looks_at_once_); }

 private:
  static constexpr std::int64_t shortest_ns = 20'000;
  unsigned looks_at_once_;
  unsigned left_;
  std::int64_t pause_ns_ = shortest_ns;
};

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// How long a packet and its acknowledgement take: the mean and the variation of RFC 6298, with the
// peer's own delay taken off as in RFC 9002, section 5. Every transmission has a packet number of
// its own, so each acknowledgement says which one it answers and Karn's rule is not needed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace strata::net::udp {

class round_trip {
 public:
  void measured(std::int64_t whole_ns, std::int64_t peer_delay_ns) {
    whole_ns = std::max<std::int64_t>(whole_ns, 1);
    latest_ns_ = whole_ns;
    if (smoothed_ns_ == 0) {
      least_ns_ = smoothed_ns_ = whole_ns;
      variation_ns_ = whole_ns / 2;
      return;
    }
    least_ns_ = std::min(least_ns_, whole_ns);
    // A delay that would make the way shorter than it can be is no delay.
    if (whole_ns - peer_delay_ns >= least_ns_) latest_ns_ = whole_ns - peer_delay_ns;
    variation_ns_ = (3 * variation_ns_ + std::abs(smoothed_ns_ - latest_ns_)) / 4;
    smoothed_ns_ = (7 * smoothed_ns_ + latest_ns_) / 8;
  }

  [[nodiscard]] bool is_known() const noexcept { return smoothed_ns_ != 0; }
  [[nodiscard]] std::int64_t smoothed_ns() const noexcept { return smoothed_ns_; }
  [[nodiscard]] std::int64_t variation_ns() const noexcept { return variation_ns_; }
  [[nodiscard]] std::int64_t latest_ns() const noexcept { return latest_ns_; }
  [[nodiscard]] std::int64_t least_ns() const noexcept { return least_ns_; }

 private:
  std::int64_t smoothed_ns_ = 0;  // 0: nothing measured yet
  std::int64_t variation_ns_ = 0;
  std::int64_t latest_ns_ = 0;
  std::int64_t least_ns_ = 0;
};

}  // namespace strata::net::udp

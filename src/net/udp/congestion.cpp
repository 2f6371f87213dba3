// SPDX-License-Identifier: Apache-2.0
#include "net/udp/congestion.hpp"

#include <algorithm>

namespace strata::net::udp {

namespace {

constexpr std::size_t first_packets = 10;  // RFC 9002, section 7.2
constexpr std::size_t least_packets = 2;
constexpr std::size_t remembered_packets = 1024;
// So many beyond 2 % are still chance: 1 % of what is remembered, and four standard deviations.
constexpr std::size_t chance_packets = 4;

constexpr std::size_t reduced(std::size_t bytes) { return bytes * 7 / 10; }

}  // namespace

congestion::congestion(std::size_t packet_bytes)
    : packet_bytes_(packet_bytes), window_(first_packets * packet_bytes) {}

void congestion::count(std::size_t settled, std::size_t lost) noexcept {
  settled_packets_ += settled;
  lost_packets_ += lost;
  if (settled_packets_ < remembered_packets) return;
  settled_packets_ /= 2;
  lost_packets_ /= 2;
}

void congestion::on_acknowledged(std::size_t bytes, std::int64_t sent_ns,
                                 std::size_t in_flight_bytes) {
  count(1, 0);
  // What was on its way when the window was reduced says nothing about the smaller one; and a
  // window that is not used has not been tested.
  if (sent_ns <= reduced_at_ || in_flight_bytes < window_ / 2) return;
  if (window_ < slow_start_below_) {
    window_ += bytes;
    return;
  }
  acknowledged_ += bytes;
  if (acknowledged_ < window_) return;
  acknowledged_ -= window_;
  window_ += packet_bytes_;
}

void congestion::on_lost(std::size_t packets, std::int64_t sent_ns, std::int64_t now_ns,
                         const round_trip& r) {
  count(packets, packets);
  const bool is_queue = r.latest_ns() / 10 * 7 >= r.least_ns();
  const bool is_frequent = lost_packets_ > settled_packets_ / 50 + chance_packets;
  if (sent_ns <= reduced_at_ || !(is_queue || is_frequent)) return;
  window_ = std::max(reduced(window_), least_packets * packet_bytes_);
  slow_start_below_ = window_;
  acknowledged_ = 0;
  reduced_at_ = now_ns;
}

void congestion::on_silence() {
  slow_start_below_ = std::max(window_ / 2, least_packets * packet_bytes_);
  window_ = least_packets * packet_bytes_;
  acknowledged_ = 0;
}

}  // namespace strata::net::udp

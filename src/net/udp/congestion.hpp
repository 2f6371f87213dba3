// SPDX-License-Identifier: Apache-2.0
// How many bytes may be in the network. The skeleton is NewReno's as in RFC 9002, section 7: slow
// start, one packet more per round trip, one reduction per round trip of losses, never below two
// packets, and back to two when nothing comes through. Reductions are CUBIC's (x .7, RFC 9438).
//
// We differ in what counts as a sign of congestion. NewReno's window at a loss rate p is about
// 1.2 / sqrt(p) packets (M. Mathis et al., doi:10.1145/263932.264023), 12 at 1 %, whatever the link
// could carry. So a loss by itself is not believed; it is where either
//  - the round trip shows a queue: it is at least 1 / .7 of the shortest one. The window reduced by
//    .7 then still fills the path, so this costs no throughput if the loss was chance after all; or
//  - losses are more than 2 % of what was sent of late, which is BBRv2's threshold
//    (draft-cardwell-iccrg-bbr-congestion-control-02, section 4.5): a queue too short to be seen in
//    the round trip overflows more often than that soon after it is full.
#pragma once
#include <cstddef>
#include <cstdint>

#include "net/udp/round_trip.hpp"

namespace strata::net::udp {

class congestion {
 public:
  explicit congestion(std::size_t packet_bytes);

  [[nodiscard]] std::size_t window_bytes() const noexcept { return window_; }

  // A packet of so many bytes, sent at sent_ns, has arrived; in_flight_bytes are those before that.
  void on_acknowledged(std::size_t bytes, std::int64_t sent_ns, std::size_t in_flight_bytes);
  // So many packets are lost; the last of them was sent at sent_ns.
  void on_lost(std::size_t packets, std::int64_t sent_ns, std::int64_t now_ns, const round_trip& r);
  // Nothing comes through any more.
  void on_silence();

 private:
  void count(std::size_t settled, std::size_t lost) noexcept;

  const std::size_t packet_bytes_;
  std::size_t window_;
  std::size_t slow_start_below_ = SIZE_MAX;
  std::size_t acknowledged_ = 0;  // since the last packet more; not in slow start
  std::int64_t reduced_at_ = -1;  // of the last reduction
  // Of late: halved now and then.
  std::size_t settled_packets_ = 0;
  std::size_t lost_packets_ = 0;
};

}  // namespace strata::net::udp

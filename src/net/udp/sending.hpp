// SPDX-License-Identifier: Apache-2.0
// One direction between two nodes, from where it is sent: a stream of bytes, of which each is kept
// until the peer has acknowledged it, and sent again when its packet is lost. A state machine
// without sockets, threads or clock.
//
// A packet is lost when three later ones have arrived, or one later one 9/8 of a round trip ago; if
// nothing arrives at all, the oldest is sent again as a probe, at growing intervals (RFC 9002,
// section 6). Which bytes are in the network is limited by congestion.hpp, which bytes may be sent
// at all by the peer's window.
//
// Invariant: in_flight_bytes_ is the sum over the packets in flight_ that are neither acknowledged
// nor lost, outstanding_ their number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "net/byte_ring.hpp"
#include "net/udp/congestion.hpp"
#include "net/udp/interval_set.hpp"
#include "net/udp/packet.hpp"
#include "net/udp/round_trip.hpp"

namespace strata::net::udp {

inline constexpr std::int64_t never_ns = INT64_MAX;

class sending {
 public:
  struct settings {
    std::size_t packet_bytes = 1400;                  // of the largest datagram, its seal included
    std::size_t buffer_bytes = std::size_t{1} << 20;  // unacknowledged, or not even sent
    std::int64_t peer_delay_ns = 1'000'000;           // for which the peer keeps acknowledgements
    std::int64_t first_timeout_ns = 20'000'000;       // while no round trip has been measured
    std::int64_t most_timeout_ns = 1'000'000'000;
  };
  explicit sending(const settings& s);

  // ---- the stream ----
  [[nodiscard]] std::size_t room_bytes() const noexcept { return ring_.room(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return ring_.used(); }
  void append(std::span<const std::byte> bytes) { ring_.append(bytes.data(), bytes.size()); }
  // Everything has been sent at least once; everything has arrived.
  [[nodiscard]] bool is_sent() const noexcept { return next_ == end(); }
  [[nodiscard]] std::size_t unsent_bytes() const noexcept {
    return static_cast<std::size_t>(end() - next_);
  }
  [[nodiscard]] bool is_clear() const noexcept { return ring_.used() == 0; }
  [[nodiscard]] std::uint64_t end() const noexcept { return arrived_below_ + ring_.used(); }

  // Nothing is sent any more.
  void give_back_memory() noexcept { ring_.give_back_memory(); }

  // ---- packets ----
  // The peer has acknowledged something: data, or a ping.
  [[nodiscard]] bool is_heard() const noexcept { return acknowledged_to_ != 0; }
  struct piece {
    std::uint64_t offset = 0;
    std::span<const std::byte> data{};
    bool wants_answer = false;  // data does; without data it is a probe
  };
  // What may be sent now: at most so many bytes of the stream. False: nothing.
  [[nodiscard]] bool next(std::size_t data_bytes_max, piece& p);
  // A packet leaves: its number and for how many before it we still wait.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return base_ + flight_.size(); }
  [[nodiscard]] std::uint32_t waited_for() const noexcept {
    return static_cast<std::uint32_t>(flight_.size());
  }
  void sent(const piece& p, std::size_t bytes, std::int64_t now_ns);
  // The peer is to answer, though there is nothing to say.
  void ping() noexcept { ping_wanted_ = true; }

  // False: it acknowledges what was never sent.
  [[nodiscard]] bool on_acknowledgement(const acknowledgement& a, std::int64_t now_ns);

  // ---- time ----
  [[nodiscard]] std::int64_t due_ns() const noexcept;
  void on_time(std::int64_t now_ns);
  // For how long what is under way has not been answered at all.
  [[nodiscard]] std::int64_t silent_ns(std::int64_t now_ns) const noexcept {
    return outstanding_ == 0 ? 0 : now_ns - progress_at_;
  }
  // For long nobody has looked for answers: silence before now proves nothing.
  void nobody_looked_until(std::int64_t now_ns) noexcept { progress_at_ = now_ns; }

  // ---- for tests and statistics ----
  [[nodiscard]] std::size_t in_flight_bytes() const noexcept { return in_flight_bytes_; }
  [[nodiscard]] std::size_t window_bytes() const noexcept { return congestion_.window_bytes(); }
  [[nodiscard]] std::uint64_t packets_lost() const noexcept { return packets_lost_; }
  [[nodiscard]] std::uint64_t probes() const noexcept { return probes_sent_; }
  [[nodiscard]] std::size_t remembered() const noexcept { return flight_.size(); }
  [[nodiscard]] std::uint64_t peer_window() const noexcept { return peer_window_; }
  [[nodiscard]] std::uint64_t next_offset() const noexcept { return next_; }

 private:
  struct sent_packet {
    std::uint64_t offset;
    std::uint32_t data_bytes;
    std::uint32_t bytes;  // of the datagram; 0: it is not waited for (any more)
    std::int64_t sent_at;
  };

  [[nodiscard]] bool is_blocked() const noexcept;
  [[nodiscard]] std::int64_t timeout_ns() const noexcept;
  void settle(sent_packet& p) noexcept;
  void arrived(std::uint64_t from, std::uint64_t to);
  void find_lost(std::int64_t now_ns);
  void repeat(const sent_packet& p);
  void forget_settled();

  const settings settings_;
  byte_ring ring_;                   // from arrived_below_ on
  std::uint64_t arrived_below_ = 0;  // all bytes before have been acknowledged
  interval_set arrived_;             // and these behind it
  interval_set repeats_;             // are to be sent again
  std::uint64_t next_ = 0;           // the first byte that has never been sent
  std::uint64_t peer_window_ = 0;    // the first byte that the peer has no room for

  std::deque<sent_packet> flight_;  // numbers base_ and on
  std::uint64_t base_ = 0;
  std::uint64_t acknowledged_to_ = 0;  // behind the largest number acknowledged
  std::size_t in_flight_bytes_ = 0;
  std::size_t outstanding_ = 0;

  round_trip round_trip_;
  congestion congestion_;
  std::int64_t loss_due_ns_ = never_ns;  // when a gap becomes a loss
  std::int64_t sent_at_ = 0;             // of the last packet that is waited for
  std::int64_t progress_at_ = 0;
  unsigned timeouts_ = 0;       // in a row
  unsigned probes_wanted_ = 0;  // packets that congestion does not keep back
  bool ping_wanted_ = false;
  std::uint64_t packets_lost_ = 0;
  std::uint64_t probes_sent_ = 0;
};

}  // namespace strata::net::udp

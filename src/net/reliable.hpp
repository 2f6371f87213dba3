// SPDX-License-Identifier: Apache-2.0
// Exactly once and in order, over a network that loses, doubles and reorders: one direction pair
// between two nodes, as a state machine without sockets, threads or clock. Every message carries a
// sequence number; the receiver keeps what comes early, drops what comes twice, and acknowledges
// all that it has without a gap; the sender repeats what is not acknowledged in time, at growing
// intervals. Source: the sliding window with cumulative acknowledgements of RFC 9293 (TCP), on
// messages instead of bytes; the retransmission timer after RFC 6298.
//
// For the simulated nodes, of which there are thousands: it costs next to nothing while it is not
// used, and knows no limits of a network. What carries messages over a real one that loses is
// udp/channel.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace strata::net {

class reliable_channel {
 public:
  struct settings {
    std::int64_t first_timeout_ns = 10'000'000;
    std::int64_t least_timeout_ns = 1'000'000;
    std::int64_t most_timeout_ns = 1'000'000'000;
    std::size_t window_messages = 1024;  // sent and not acknowledged; also kept early at most
  };
  struct packet {
    std::uint32_t sequence;      // of this message; meaningless if carries_message is false
    std::uint32_t acknowledged;  // all below have arrived
    bool carries_message;
    std::span<const std::byte> payload;
  };
  // How packets leave, and where messages go; called from within the functions below.
  struct hooks {
    std::function<void(const packet&)> transmit;
    std::function<void(std::span<const std::byte>)> deliver;
  };

  reliable_channel(const settings& s, hooks h);

  // Sends now, or as soon as the window allows.
  void send(std::vector<std::byte> message, std::int64_t now_ns);
  void on_packet(const packet& p, std::int64_t now_ns);
  // Repeats what is overdue. Returns when to call again; INT64_MAX: not before the next send().
  std::int64_t on_time(std::int64_t now_ns);

  // Nothing is under way from here.
  [[nodiscard]] bool is_clear() const noexcept { return in_flight_.empty() && waiting_.empty(); }
  // How often the oldest message has been repeated in vain.
  [[nodiscard]] unsigned repeats() const noexcept {
    return in_flight_.empty() ? 0 : in_flight_.front().repeats;
  }

 private:
  struct unacknowledged {
    std::uint32_t sequence;
    std::vector<std::byte> message;
    std::int64_t sent_at;
    unsigned repeats;
  };
  void transmit(unacknowledged& m, std::int64_t now_ns);
  void acknowledge(std::uint32_t below, std::int64_t now_ns);
  void measured(std::int64_t round_trip_ns);
  [[nodiscard]] std::int64_t timeout_after(unsigned repeats) const;

  const settings settings_;
  const hooks hooks_;

  std::uint32_t next_out_ = 0;
  std::deque<unacknowledged> in_flight_;
  std::deque<std::vector<std::byte>> waiting_;  // for room in the window
  // When the first of those in flight is overdue: on_time() is called whenever anything happens.
  static constexpr std::int64_t unknown = INT64_MIN;
  std::int64_t due_ns_ = unknown;
  std::int64_t smoothed_ns_ = 0;
  std::int64_t variation_ns_ = 0;

  std::uint32_t next_in_ = 0;
  std::map<std::uint32_t, std::vector<std::byte>> early_;
};

}  // namespace strata::net

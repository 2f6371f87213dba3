// SPDX-License-Identifier: Apache-2.0
// Exactly once and in order between two nodes over a network that loses, doubles, reorders and has
// a limited capacity: both directions, as a state machine without sockets, threads or clock. It
// makes packets when asked to, and is told of those that arrive; who calls seals and carries them.
//
//   while (const std::size_t bytes = c.next_packet(buffer, now_ns)) send(buffer, bytes);
//
// is to be called whenever something was written, has arrived, or is due.
//
// net/reliable.hpp does the same for the simulated nodes: for thousands of channels with whole
// messages and no limits to a network, which cost next to nothing while they are not used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/udp/packet.hpp"
#include "net/udp/receiving.hpp"
#include "net/udp/sending.hpp"

namespace strata::net::udp {

class channel {
 public:
  struct settings {
    sending::settings out{};
    receiving::settings in{};
    std::size_t tail_bytes = 0;  // what the caller adds to each packet; part of packet_bytes
  };
  channel(node_id self, node_id peer, const settings& s);

  // Appends to the stream; false: no room, nothing has happened.
  [[nodiscard]] bool write(std::span<const std::byte> first, std::span<const std::byte> second,
                           std::span<const std::byte> third);
  // The peer is to answer.
  void ping() noexcept { out_.ping(); }

  // Writes the next packet, if one may be sent now; returns its size, or 0. `into` has room for
  // packet_bytes. The packet counts as sent.
  std::size_t next_packet(std::span<std::byte> into, std::int64_t now_ns, std::uint64_t& number);
  // The same for the last one: this node leaves.
  std::size_t last_packet(std::span<std::byte> into, std::int64_t now_ns, std::uint64_t& number);

  using outcome = receiving::outcome;
  [[nodiscard]] outcome on_packet(const packet& p, std::int64_t now_ns);

  // Call on_time() then; never_ns: not before something else happens.
  [[nodiscard]] std::int64_t due_ns() const noexcept;
  void on_time(std::int64_t now_ns) { out_.on_time(now_ns); }

  // It is used no more.
  void give_back_memory() noexcept {
    out_.give_back_memory();
    in_.give_back_memory();
  }

  [[nodiscard]] sending& out() noexcept { return out_; }
  [[nodiscard]] const sending& out() const noexcept { return out_; }
  [[nodiscard]] receiving& in() noexcept { return in_; }
  [[nodiscard]] const receiving& in() const noexcept { return in_; }
  // The peer has said that it leaves and that its stream ends there.
  [[nodiscard]] bool has_end() const noexcept { return has_end_; }
  [[nodiscard]] bool is_complete() const noexcept {
    return has_end_ && in_.complete_to() >= ends_at_;
  }

 private:
  [[nodiscard]] packet begin_packet() const;

  const node_id self_;
  const node_id peer_;
  const settings settings_;
  sending out_;
  receiving in_;
  bool has_end_ = false;
  std::uint64_t ends_at_ = 0;
};

}  // namespace strata::net::udp

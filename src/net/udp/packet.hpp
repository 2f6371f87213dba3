// SPDX-License-Identifier: Apache-2.0
// What a datagram between two nodes says, and its bytes:
//
//   mark 4 | source 2 | destination 2 | number 8 | waited_for 4 | flags 1 | ranges 1 | zero 2
//   [acknowledgement: window 8 | largest 8 | delay_us 4 | ranges x (gap 4, length 4)]
//   [data: offset 8 | bytes, to the end]            or            [end: offset 8]
//
// and behind it the seal (seal.hpp). Each transmission has a number of its own, also when it
// carries old data, as in QUIC (RFC 9000, section 12.3; RFC 9002, section 3).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire.hpp"

namespace strata::net::udp {

struct packet_head {
  std::uint32_t mark;
  node_id source;
  node_id destination;
  std::uint64_t number;
  // The sender knows or does not care any more what became of all numbers more than this before
  // `number`: the receiver may forget them.
  std::uint32_t waited_for;
  std::uint8_t flags;
  std::uint8_t ranges;
  std::uint16_t zero;
};
static_assert(sizeof(packet_head) == 24);

inline constexpr std::uint32_t packet_mark = 0x31'54'52'53;  // "SRT1"

enum packet_flag : std::uint8_t {
  has_acknowledgement = 1,
  has_data = 2,
  wants_answer = 4,  // is to be acknowledged; data always is
  is_end = 8,        // the sender leaves; nothing follows what is before `offset`
};

inline constexpr std::size_t ranges_max = 32;

struct acknowledgement {
  struct range {
    std::uint64_t from, to;  // [from, to)
  };
  std::uint64_t window = 0;    // the peer may send all bytes before this offset
  std::uint32_t delay_us = 0;  // since the largest number arrived
  std::size_t count = 0;
  std::array<range, ranges_max> ranges{};  // the largest numbers first
};

struct packet {
  node_id source = 0, destination = 0;
  std::uint64_t number = 0;
  std::uint32_t waited_for = 0;
  std::uint8_t flags = 0;
  acknowledgement ack{};
  std::uint64_t offset = 0;
  std::span<const std::byte> data{};
};

[[nodiscard]] constexpr std::size_t acknowledgement_bytes(std::size_t ranges) {
  return 20 + 8 * ranges;
}
// Of a packet without an acknowledgement.
inline constexpr std::size_t data_overhead_bytes = sizeof(packet_head) + 8;

// `into` must have room. Returns the number of bytes.
std::size_t write_packet(const packet& p, std::span<std::byte> into);

// Only for what is known to be of this job, and then only for routing: the rest is not checked.
[[nodiscard]] bool read_head(std::span<const std::byte> from, packet_head& head);
// False: not a packet. p.data points into `from`.
[[nodiscard]] bool read_packet(std::span<const std::byte> from, packet& p);

}  // namespace strata::net::udp

// SPDX-License-Identifier: Apache-2.0
// What can be chosen about TCP; the defaults are what a job should run with, the rest is there for
// EARTH's experiments (how sockets are written to, how they are polled, how small their buffers
// may be).
#pragma once
#include <cstddef>
#include <cstdint>

#include "net/burst.hpp"
#include "net/wire.hpp"

namespace strata::net::tcp {

// How bytes get into the kernel.
enum class io_mode : std::uint8_t {
  // Whoever sends writes, without ever waiting; what the kernel does not take is staged and the
  // sender thread writes it when there is room.
  non_blocking,
  // Only the sender thread writes, and it sleeps in the write itself: try_send() stages, flush()
  // blocks (bounded by blocking_write_ms_max, so that a peer that stopped reading cannot keep the
  // sender from noticing the end). One slow peer delays the messages to all others; it cannot
  // deadlock, because receivers never send. Needs a sender thread of its own.
  blocking,
};

// How poll() learns which sockets have something.
enum class poll_mechanism : std::uint8_t {
  automatic,  // recv up to recv_peers_max peers, epoll above
  recv,       // tries all of them
  epoll,
  poll,
  select,  // descriptors below FD_SETSIZE only
};

struct options {
  std::size_t socket_buffer_bytes = 0;  // SO_SNDBUF and SO_RCVBUF each; 0: the system's choice
  io_mode io = io_mode::non_blocking;
  poll_mechanism mechanism = poll_mechanism::automatic;

  // Messages that follow each other within burst_gap_ns are collected and written together once
  // batch_bytes are there or the first of them has waited for flush_deadline_ns. Off: each message
  // is written at once unless the kernel is full or another thread is writing.
  bool aggregate = true;
  std::int64_t flush_deadline_ns = burst::usual_deadline_ns;
  std::int64_t burst_gap_ns = burst::usual_gap_ns;

  // What waits for the kernel, per peer: beyond it try_send() says would_block. Rounded up to
  // pages; at least one message of the largest size. Takes memory where it was used, for good.
  std::size_t staging_bytes = std::size_t{2} << 20;
};

inline constexpr std::size_t recv_peers_max = 4;
inline constexpr std::int64_t blocking_write_ms_max = 100;

// A quarter of it takes up to twice as long, as each batch may wake the sender thread.
inline constexpr std::size_t batch_bytes = std::size_t{64} << 10;
// From here on a message is not copied into the staging buffer if it can be written at once.
inline constexpr std::size_t gather_bytes_min = std::size_t{4} << 10;

// Large messages for a peer that is corked are written once there are so many bytes, or the staging
// buffer holds no more; copied into it only if their memory may change meanwhile. In writes of a
// third of it a stream is a quarter slower, of a tenth a third.
inline constexpr std::size_t corked_bytes = std::size_t{1} << 20;

inline constexpr std::size_t message_bytes_max = sizeof(header) + payload_bytes_max;

}  // namespace strata::net::tcp

// SPDX-License-Identifier: Apache-2.0
// One direction between two nodes, from where it is received: which packets have arrived, and the
// stream that they carry, put in order. A state machine without sockets, threads or clock.
//
// Invariant: what is kept lies in [consumed, consumed + capacity of ring_); the peer has been told
// that it may send no further.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/byte_ring.hpp"
#include "net/udp/interval_set.hpp"
#include "net/udp/packet.hpp"

namespace strata::net::udp {

class receiving {
 public:
  struct settings {
    std::size_t buffer_bytes = std::size_t{1} << 20;
    std::int64_t delay_ns = 1'000'000;  // for which an acknowledgement may wait for company
  };
  explicit receiving(const settings& s) : settings_(s), ring_(s.buffer_bytes) {}

  enum class outcome {
    taken,
    repeated,   // it has come before, or too late
    malformed,  // it sends what it may not
  };
  [[nodiscard]] outcome on_packet(const packet& p, std::int64_t now_ns);

  // The stream, as far as it has no gap. It may be read while other threads ask the rest.
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return ring_.data(); }
  void consume(std::size_t bytes);
  [[nodiscard]] std::uint64_t complete_to() const noexcept { return complete_to_; }

  // Nothing is taken any more.
  void give_back_memory() noexcept { ring_.give_back_memory(); }

  // When an acknowledgement is due: at once is 0, INT64_MAX is never.
  [[nodiscard]] std::int64_t due_ns() const noexcept { return due_ns_; }
  // It is to be told with the next packet at any rate.
  [[nodiscard]] bool has_news() const noexcept { return due_ns_ != INT64_MAX; }
  // The acknowledgement of all there is, which the caller sends.
  [[nodiscard]] acknowledgement acknowledge(std::int64_t now_ns);

  // How many ranges that takes.
  [[nodiscard]] std::size_t ranges() const noexcept { return seen_.size(); }
  [[nodiscard]] std::size_t kept_intervals() const noexcept { return seen_.size() + early_.size(); }

 private:
  [[nodiscard]] std::uint64_t window() const noexcept { return consumed_ + ring_.capacity(); }
  void store(std::uint64_t offset, std::span<const std::byte> data);

  const settings settings_;
  interval_set seen_;          // numbers of packets
  std::uint64_t floor_ = 0;    // numbers below need not be known any more
  std::uint64_t largest_ = 0;  // of seen_
  std::int64_t largest_at_ = 0;
  unsigned unanswered_ = 0;
  std::int64_t due_ns_ = INT64_MAX;

  byte_ring ring_;
  interval_set early_;             // bytes behind a gap, in the free part of ring_
  std::uint64_t consumed_ = 0;     // the offset at which ring_ begins
  std::uint64_t complete_to_ = 0;  // and ends
  std::uint64_t announced_ = 0;    // the window that the peer was told last
};

}  // namespace strata::net::udp

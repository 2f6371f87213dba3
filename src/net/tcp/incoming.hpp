// SPDX-License-Identifier: Apache-2.0
// What arrives from one peer: bytes of a socket, cut into messages. Nothing in a header is believed
// before it is checked, although the peer has proved who it is: it may run wild.
//
// One thread at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/byte_ring.hpp"
#include "net/tcp/options.hpp"
#include "net/transport.hpp"

namespace strata::net::tcp {

class incoming {
 public:
  incoming(node_id peer, node_id self);

  enum class outcome {
    ok,
    nothing,  // no bytes are there, or no complete message
    lost,     // the stream has ended or makes no sense: why()
  };

  // Reads what the socket has, as far as there is room: when next() has said nothing, there is.
  outcome receive(int fd);

  // The next message; payload is valid until the next receive().
  outcome next(header& h, std::span<const std::byte>& payload);
  // Whether next() would say anything but nothing.
  [[nodiscard]] bool has_next() const noexcept;

  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // What comes next comes over a new connection.
  void restart() noexcept;
  // Nothing comes before a restart().
  void give_back_memory() noexcept { ring_.give_back_memory(); }

  void add_to(transport::traffic& t) const noexcept;

 private:
  [[nodiscard]] bool is_wrong(const header& h);

  const node_id peer_;
  const node_id self_;
  byte_ring ring_;
  std::uint32_t next_sequence_ = 0;
  std::string why_;
  // Written by the receiving thread, read by any.
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace strata::net::tcp

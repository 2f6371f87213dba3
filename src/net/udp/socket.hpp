// SPDX-License-Identifier: Apache-2.0
// The one socket of a node: datagrams to and from everybody, several per system call.
#pragma once
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "launch/job.hpp"
#include "os/descriptor.hpp"

namespace strata::net::udp {

// All datagrams of a job are shorter; who sends longer ones is a stranger.
inline constexpr std::size_t datagram_bytes_max = std::size_t{16} << 10;
inline constexpr std::size_t batch_max = 32;

struct target {
  sockaddr_storage where{};
  socklen_t size = 0;
};

// Throws strata::user_error when that is no numeric address.
[[nodiscard]] target target_of(const launch::address& a);
// The largest datagram that goes there in one piece, at most datagram_bytes_max.
[[nodiscard]] std::size_t path_bytes_to(const target& t);

class datagram_socket {
 public:
  // Bound to a free port of that numeric address. Throws strata::user_error when there is none.
  explicit datagram_socket(const std::string& host);

  [[nodiscard]] launch::address address() const;
  [[nodiscard]] int get() const noexcept { return socket_.get(); }

  // Datagrams that lie behind each other in `bytes`. Returns how many the kernel took; what it
  // refuses for another reason than lack of room counts as taken, and is lost.
  std::size_t send(const target& to, std::span<const std::byte> bytes,
                   std::span<const std::size_t> sizes) const noexcept;

 private:
  os::descriptor socket_;
};

// Where datagrams arrive; used by one thread at a time.
class arrivals {
 public:
  arrivals();
  // Takes up to batch_max from the socket.
  std::size_t receive(const datagram_socket& from) noexcept;
  // Empty: it was longer than any of ours.
  [[nodiscard]] std::span<const std::byte> at(std::size_t i) const noexcept;

 private:
  std::vector<std::byte> memory_;
  std::array<mmsghdr, batch_max> heads_{};
  std::array<iovec, batch_max> places_{};
};

}  // namespace strata::net::udp

// SPDX-License-Identifier: Apache-2.0
// A socket: datagrams to and from everybody, several per system call. Where the
// kernel knows UDP's segmentation offload, those of one size also pass through it as one: sending,
// it cuts them apart at the end of its way; receiving, it puts together what came in a row.
#pragma once
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "launch/address.hpp"
#include "os/descriptor.hpp"

namespace strata::net::udp {

// All datagrams of a job are shorter; who sends longer ones is a stranger. Four of them pass
// through the kernel as one.
inline constexpr std::size_t datagram_bytes_max = (std::size_t{16} << 10) - 16;
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
  std::size_t send_one_by_one(const target& to, std::span<const std::byte> bytes,
                              std::span<const std::size_t> sizes) const noexcept;

  os::descriptor socket_;
  // Whether datagrams may leave together; until the kernel or a device refuses. Relaxed: who sees
  // it late is refused as well, and tries again without.
  mutable std::atomic<bool> joins_{false};
};

// Where datagrams arrive; used by one thread at a time.
class arrivals {
 public:
  arrivals();
  // Returns how many have come.
  std::size_t receive(const datagram_socket& from);
  // There may be more in the socket.
  [[nodiscard]] bool is_full() const noexcept { return full_; }
  // Empty: it was longer than any of ours.
  [[nodiscard]] std::span<const std::byte> at(std::size_t i) const noexcept { return parts_[i]; }

 private:
  struct control {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
  };

  std::unique_ptr<std::byte[]> memory_;
  std::array<mmsghdr, batch_max> heads_{};
  std::array<iovec, batch_max> places_{};
  std::array<control, batch_max> controls_{};
  std::vector<std::span<const std::byte>> parts_;
  bool full_ = false;
};

}  // namespace strata::net::udp

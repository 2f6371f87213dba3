// SPDX-License-Identifier: Apache-2.0
#include "net/udp/socket.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/errno_error.hpp"
#include "launch/socket_address.hpp"
#include "net/cannot_listen.hpp"
#include "net/numeric_address.hpp"

namespace strata::net::udp {

namespace {

// What the kernel keeps for us while nobody polls; it may grant less.
constexpr int socket_buffer_bytes = 4 << 20;
// What every path of today carries, less the headers of IPv6 and UDP; if the kernel does not say.
constexpr std::size_t usual_path_bytes = 1400;
constexpr std::size_t least_path_bytes = 1200;  // as QUIC demands (RFC 9000, section 14)

// As the kernel limits it: segments, and bytes of all with the headers of IPv6 and UDP.
constexpr std::size_t joined_max = 64;
constexpr std::size_t joined_bytes_max = 65535 - 48;
// What arrives as one.
constexpr std::size_t arrival_bytes_max = std::size_t{1} << 16;

os::descriptor make_socket(int family) {
  os::descriptor s(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) throw errno_error("cannot make a socket", errno);
  return s;
}

}  // namespace

target target_of(const launch::address& a) {
  const address_list list = resolve(a, SOCK_DGRAM, 0);
  target t;
  t.size = std::min<socklen_t>(list->ai_addrlen, sizeof t.where);
  std::memcpy(&t.where, list->ai_addr, t.size);
  return t;
}

std::size_t path_bytes_to(const target& t) {
  const os::descriptor s = make_socket(t.where.ss_family);
  const bool v6 = t.where.ss_family == AF_INET6;
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (::connect(s.get(), reinterpret_cast<const sockaddr*>(&t.where), t.size) != 0 ||
      ::getsockopt(s.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &size) !=
          0) {
    return usual_path_bytes;
  }
  const int headers = (v6 ? 40 : 20) + 8;
  return std::clamp(static_cast<std::size_t>(std::max(mtu - headers, 0)), least_path_bytes,
                    datagram_bytes_max);
}

datagram_socket::datagram_socket(const std::string& host) {
  const target t = target_of({host, 0});
  socket_ = make_socket(t.where.ss_family);
  for (const int which : {SO_SNDBUF, SO_RCVBUF}) {
    ::setsockopt(socket_.get(), SOL_SOCKET, which, &socket_buffer_bytes,
                 sizeof socket_buffer_bytes);
  }
  // Where a part of the path carries less than its beginning, the kernel cuts datagrams up.
  const bool v6 = t.where.ss_family == AF_INET6;
  const int never = v6 ? IPV6_PMTUDISC_DONT : IP_PMTUDISC_DONT;
  ::setsockopt(socket_.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP,
               v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &never, sizeof never);
  // Not for datagrams yet, but it tells whether the kernel knows it.
  const int nothing = 0;
  joins_ = ::setsockopt(socket_.get(), SOL_UDP, UDP_SEGMENT, &nothing, sizeof nothing) == 0;
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_UDP, UDP_GRO, &yes, sizeof yes);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&t.where), t.size) != 0) {
    throw cannot_listen(host, 0, errno);
  }
}

launch::address datagram_socket::address() const { return launch::bound_to(socket_.get()); }

std::size_t datagram_socket::send(const target& to, std::span<const std::byte> bytes,
                                  std::span<const std::size_t> sizes) const noexcept {
  std::size_t sent = 0;
  while (sent < sizes.size()) {
    // All but the last are of one size.
    std::size_t count = 1;
    std::size_t all = sizes[sent];
    if (joins_.load(std::memory_order_relaxed)) {
      while (sent + count < sizes.size() && count < joined_max &&
             sizes[sent + count - 1] == sizes[sent] && sizes[sent + count] <= sizes[sent] &&
             all + sizes[sent + count] <= joined_bytes_max) {
        all += sizes[sent + count++];
      }
    }
    if (count == 1) return sent + send_one_by_one(to, bytes, sizes.subspan(sent));
    iovec place{const_cast<std::byte*>(bytes.data()), all};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> said{};
    msghdr h{};
    h.msg_name = const_cast<sockaddr_storage*>(&to.where);
    h.msg_namelen = to.size;
    h.msg_iov = &place;
    h.msg_iovlen = 1;
    h.msg_control = said.data();
    h.msg_controllen = said.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto size = static_cast<std::uint16_t>(sizes[sent]);
    std::memcpy(CMSG_DATA(c), &size, sizeof size);
    if (::sendmsg(socket_.get(), &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return sent;
      if (errno == EINVAL || errno == EIO || errno == EMSGSIZE) {
        joins_.store(false, std::memory_order_relaxed);
        continue;
      }
    }
    bytes = bytes.subspan(all);
    sent += count;
  }
  return sent;
}

std::size_t datagram_socket::send_one_by_one(const target& to, std::span<const std::byte> bytes,
                                             std::span<const std::size_t> sizes) const noexcept {
  std::array<mmsghdr, batch_max> heads{};
  std::array<iovec, batch_max> places{};
  const std::size_t count = std::min(sizes.size(), batch_max);
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = {const_cast<std::byte*>(bytes.data() + at), sizes[i]};
    at += sizes[i];
    msghdr& h = heads[i].msg_hdr;
    h.msg_name = const_cast<sockaddr_storage*>(&to.where);
    h.msg_namelen = to.size;
    h.msg_iov = &places[i];
    h.msg_iovlen = 1;
  }
  std::size_t taken = 0;
  while (taken < count) {
    const int n = ::sendmmsg(socket_.get(), heads.data() + taken,
                             static_cast<unsigned>(count - taken), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      taken += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      ++taken;
    }
  }
  return taken;
}

arrivals::arrivals()
    : memory_(std::make_unique_for_overwrite<std::byte[]>(batch_max * arrival_bytes_max)) {
  for (std::size_t i = 0; i < batch_max; ++i) {
    places_[i] = {memory_.get() + i * arrival_bytes_max, arrival_bytes_max};
    heads_[i].msg_hdr.msg_iov = &places_[i];
    heads_[i].msg_hdr.msg_iovlen = 1;
    heads_[i].msg_hdr.msg_control = controls_[i].bytes.data();
    heads_[i].msg_hdr.msg_controllen = controls_[i].bytes.size();
  }
}

std::size_t arrivals::receive(const datagram_socket& from) {
  parts_.clear();
  int n = -1;
  // A datagram that was sent to a closed port of ours may be reported as an error, once.
  for (int i = 0; i < 2 && n < 0; ++i) {
    n = ::recvmmsg(from.get(), heads_.data(), batch_max, MSG_DONTWAIT, nullptr);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
  }
  full_ = n == static_cast<int>(batch_max);
  for (int i = 0; i < n; ++i) {
    msghdr& h = heads_[static_cast<std::size_t>(i)].msg_hdr;
    std::span<const std::byte> all{static_cast<const std::byte*>(h.msg_iov->iov_base),
                                   heads_[static_cast<std::size_t>(i)].msg_len};
    std::size_t part = all.size();
    for (cmsghdr* c = CMSG_FIRSTHDR(&h); c != nullptr; c = CMSG_NXTHDR(&h, c)) {
      int size = 0;
      if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO) continue;
      std::memcpy(&size, CMSG_DATA(c), sizeof size);
      if (size > 0) part = std::min(part, static_cast<std::size_t>(size));
    }
    h.msg_controllen = controls_[static_cast<std::size_t>(i)].bytes.size();
    do {
      const std::span<const std::byte> one = all.first(std::min(part, all.size()));
      parts_.push_back(one.size() <= datagram_bytes_max ? one : std::span<const std::byte>{});
      all = all.subspan(one.size());
    } while (!all.empty());
  }
  return parts_.size();
}

}  // namespace strata::net::udp

// SPDX-License-Identifier: Apache-2.0
#include "net/udp/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/errno_error.hpp"

namespace strata::net::udp {

namespace {

// What the kernel keeps for us while nobody polls; it may grant less.
constexpr int socket_buffer_bytes = 4 << 20;
// What every path of today carries, less the headers of IPv6 and UDP; if the kernel does not say.
constexpr std::size_t usual_path_bytes = 1400;
constexpr std::size_t least_path_bytes = 1200;  // as QUIC demands (RFC 9000, section 14)

os::descriptor make_socket(int family) {
  os::descriptor s(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) throw errno_error("cannot make a socket", errno);
  return s;
}

}  // namespace

target target_of(const launch::address& a) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(a.host.c_str(), std::to_string(a.port).c_str(), &hints, &found);
  if (code != 0) {
    throw user_error("'" + a.host + "' is not a numeric address: give one like 127.0.0.1 or ::1 (" +
                     ::gai_strerror(code) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
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
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&t.where), t.size) != 0) {
    throw user_error("cannot listen on " + host + ": " + std::generic_category().message(errno) +
                     "; choose another address for this node");
  }
}

launch::address datagram_socket::address() const {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    throw errno_error("cannot tell where this node listens", errno);
  }
  return {host, static_cast<std::uint16_t>(std::stoul(port)), {}};
}

std::size_t datagram_socket::send(const target& to, std::span<const std::byte> bytes,
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

arrivals::arrivals() : memory_(batch_max * (datagram_bytes_max + 1)) {
  for (std::size_t i = 0; i < batch_max; ++i) {
    places_[i] = {memory_.data() + i * (datagram_bytes_max + 1), datagram_bytes_max + 1};
    heads_[i].msg_hdr.msg_iov = &places_[i];
    heads_[i].msg_hdr.msg_iovlen = 1;
  }
}

std::size_t arrivals::receive(const datagram_socket& from) noexcept {
  // A datagram that was sent to a closed port of ours may be reported as an error, once.
  for (int i = 0; i < 2; ++i) {
    const int n = ::recvmmsg(from.get(), heads_.data(), batch_max, MSG_DONTWAIT, nullptr);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
  }
  return 0;
}

std::span<const std::byte> arrivals::at(std::size_t i) const noexcept {
  const std::size_t bytes = heads_[i].msg_len;
  if (bytes > datagram_bytes_max) return {};
  return {static_cast<const std::byte*>(places_[i].iov_base), bytes};
}

}  // namespace strata::net::udp

// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/errno_error.hpp"
#include "launch/socket_address.hpp"
#include "net/cannot_listen.hpp"
#include "net/numeric_address.hpp"

namespace strata::net::tcp {

namespace {

os::descriptor make_socket(int family, std::size_t buffer_bytes) {
  os::descriptor s(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) {
    const int code = errno;
    const error e = errno_error("cannot make a socket", code);
    if (is_want_of_descriptors(code)) throw no_descriptor_left(e);
    throw e;
  }
  // Before connecting or listening: the window that the two sides agree on follows from it.
  if (buffer_bytes != 0) {
    const int bytes = static_cast<int>(buffer_bytes);
    ::setsockopt(s.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    ::setsockopt(s.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  return s;
}

void send_at_once(int fd) noexcept {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

std::string text_of(const launch::address& a) {
  const bool v6 = a.host.find(':') != std::string::npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

bool is_want_of_descriptors(int code) noexcept {
  return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

os::descriptor connect_to(const launch::address& to, std::size_t buffer_bytes) {
  const address_list list = resolve(to, SOCK_STREAM, 0);
  os::descriptor s = make_socket(list->ai_family, buffer_bytes);
  send_at_once(s.get());
  if (::connect(s.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS) {
    throw errno_error("cannot connect to " + text_of(to), errno);
  }
  return s;
}

int connect_error(int fd) noexcept {
  int code = 0;
  socklen_t size = sizeof code;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

os::descriptor accept_from(int listening, std::string& from) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  os::descriptor s(::accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size,
                             SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (s) {
    send_at_once(s.get());
    from = text_of(launch::to_address(reinterpret_cast<const sockaddr*>(&peer)));
  }
  return s;
}

listener::listener(const std::string& host, std::uint16_t port, std::size_t buffer_bytes) {
  const launch::address at{host, port};
  const address_list list = resolve(at, SOCK_STREAM, AI_PASSIVE);
  socket_ = make_socket(list->ai_family, buffer_bytes);
  // A job that ended a moment ago does not keep its port.
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket_.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket_.get(), SOMAXCONN) != 0) {
    throw cannot_listen(host, port, errno);
  }
}

launch::address listener::address() const { return launch::bound_to(socket_.get()); }

}  // namespace strata::net::tcp

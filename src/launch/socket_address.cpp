// SPDX-License-Identifier: Apache-2.0
#include "launch/socket_address.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "base/errno_error.hpp"

namespace strata::launch {

std::string to_numeric(const sockaddr* of) {
  const socklen_t bytes = of->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  const int code = ::getnameinfo(of, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "";
}

address to_address(const sockaddr* of) {
  // At the same place in both kinds.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return {to_numeric(of), ntohs(reinterpret_cast<const sockaddr_in*>(of)->sin_port)};
}

address bound_to(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const at = reinterpret_cast<sockaddr*>(&own);
  if (::getsockname(fd, at, &size) != 0)
    throw errno_error("cannot tell where this node listens", errno);
  return to_address(at);
}

}  // namespace strata::launch

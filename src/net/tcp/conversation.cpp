// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/conversation.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace strata::net::tcp {

conversation::progress conversation::advance() {
  while (talk.now() == handshake::state::talking) {
    ssize_t n;
    if (const auto out = talk.outgoing(); !out.empty()) {
      n = ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n > 0) talk.sent(static_cast<std::size_t>(n));
    } else {
      std::array<std::byte, 256> bytes;
      n = ::recv(socket.get(), bytes.data(), std::min(bytes.size(), talk.wanted()), 0);
      if (n > 0) talk.received(std::span(bytes).first(static_cast<std::size_t>(n)));
      if (n == 0) return progress::broken;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return progress::waiting;
    if (n < 0) {
      error = errno;
      return progress::broken;
    }
  }
  return talk.now() == handshake::state::joined ? progress::joined : progress::refused;
}

}  // namespace strata::net::tcp

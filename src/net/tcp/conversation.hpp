// SPDX-License-Identifier: Apache-2.0
// A connection over which two nodes make sure of each other, and how far they have come.
#pragma once
#include <poll.h>

#include <cstdint>
#include <string>

#include "net/tcp/handshake.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

struct conversation {
  os::descriptor socket;
  handshake talk;
  std::string with;  // address, for people
  std::int64_t limit_ns;
  int error = 0;  // why it broke; 0: the other side closed it

  [[nodiscard]] short events() const noexcept { return talk.outgoing().empty() ? POLLIN : POLLOUT; }

  enum class progress { waiting, joined, refused, broken };
  // Sends and receives what is possible now.
  progress advance();
};

}  // namespace strata::net::tcp

// SPDX-License-Identifier: Apache-2.0
// The kernel's addresses of sockets, of IPv4 and IPv6, as nodes tell them each other.
#pragma once
#include <sys/socket.h>

#include <string>

#include "launch/address.hpp"

namespace strata::launch {

// In figures, without the port. Empty where the system cannot say.
std::string to_numeric(const sockaddr* of);
// With its port.
address to_address(const sockaddr* of);
// Where a socket is bound. Throws strata::error.
address bound_to(int fd);

}  // namespace strata::launch

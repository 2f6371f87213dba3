// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "strata/error.hpp"

namespace strata::net {

// Why this node has no socket at this address: `code` is an errno value. Port 0: any would do.
inline user_error cannot_listen(const std::string& host, std::uint16_t port, int code) {
  const std::string what = "cannot listen on " + host;
  if (port == 0 && code == EADDRINUSE)
    return user_error(what +
                      ": no port is free there; end programs that hold ports, or widen "
                      "net.ipv4.ip_local_port_range (sysctl)");
  const std::string why = std::generic_category().message(code);
  if (port == 0) return user_error(what + ": " + why + "; choose another address for this node");
  return user_error(what + ", port " + std::to_string(port) + ": " + why +
                    "; choose another address or port for this node");
}

}  // namespace strata::net

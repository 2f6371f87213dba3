// SPDX-License-Identifier: Apache-2.0
// Addresses that users and nodes give, for the kernel: numbers only, so that nobody is asked.
#pragma once
#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/shortened.hpp"
#include "launch/address.hpp"
#include "strata/error.hpp"

namespace strata::net {

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// At least one. kind: SOCK_STREAM or SOCK_DGRAM. flags: AI_PASSIVE to listen there, or 0. Throws
// user_error.
inline address_list resolve(const launch::address& a, int kind, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = kind;
  hints.ai_flags = flags | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(a.host.c_str(), std::to_string(a.port).c_str(), &hints, &found);
  if (code != 0) {
    throw user_error(in_quotes(a.host) +
                     " is not a numeric address: give one like 127.0.0.1 or ::1 (" +
                     ::gai_strerror(code) + ")");
  }
  return {found, &::freeaddrinfo};
}

}  // namespace strata::net

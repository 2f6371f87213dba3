// SPDX-License-Identifier: Apache-2.0
// A port at which nobody listens, nor any other program can while this exists: one that is let go
// may be somebody else's a moment later.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "launch/address.hpp"
#include "os/descriptor.hpp"

namespace strata::net::test {

class closed_door {
 public:
  closed_door() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const any = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(::bind(socket_.get(), any, size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), any, &size), 0);
    port_ = ntohs(at.sin_port);
  }
  [[nodiscard]] launch::address address() const {
    launch::address a;
    a.host = "127.0.0.1";
    a.port = port_;
    return a;
  }

 private:
  os::descriptor socket_;
  std::uint16_t port_ = 0;
};

}  // namespace strata::net::test

// SPDX-License-Identifier: Apache-2.0
// Stream sockets of nodes: all are non-blocking until the mesh stands, are not inherited by
// programs that a node starts, and send small messages at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "launch/address.hpp"
#include "os/descriptor.hpp"
#include "strata/error.hpp"

namespace strata::net::tcp {

// For people: 127.0.0.1:4711, [::1]:4711.
std::string text_of(const launch::address& a);

// There is none for a socket, or no memory: nothing that the other end could help.
class no_descriptor_left : public error {
 public:
  explicit no_descriptor_left(const error& why) : error(why) {}
};
// Whether an errno value means that.
bool is_want_of_descriptors(int code) noexcept;

// Begins to connect; the socket becomes writable when that has succeeded or failed. Throws
// strata::error when there is no such address, or no_descriptor_left. buffer_bytes: see options.
os::descriptor connect_to(const launch::address& to, std::size_t buffer_bytes);

// 0, or the errno value with which connecting failed.
int connect_error(int fd) noexcept;

// A connection that somebody made to us; empty when there is none (any more), with errno set.
os::descriptor accept_from(int listening, std::string& from);

// Where others can be made to connect to.
class listener {
 public:
  // host: numeric. Port 0: one that is free. Throws strata::user_error when that cannot be had.
  listener(const std::string& host, std::uint16_t port, std::size_t buffer_bytes);

  // With the port that was chosen.
  [[nodiscard]] launch::address address() const;
  [[nodiscard]] int get() const noexcept { return socket_.get(); }

 private:
  os::descriptor socket_;
};

}  // namespace strata::net::tcp

// SPDX-License-Identifier: Apache-2.0
// What a mesh stands on: time, and connections as they are made. The system and the simulation each
// have their own, so who waits how long for whom is the same code in both. What is said over a
// connection goes through its descriptor in either.
#pragma once
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "launch/address.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

class mesh_ground {
 public:
  virtual ~mesh_ground() = default;
  [[nodiscard]] virtual std::int64_t now_ns() = 0;
  // As connect_to() and accept_from().
  virtual os::descriptor connect(const launch::address& to, std::size_t buffer_bytes) = 0;
  virtual os::descriptor accept(int door, std::string& from) = 0;
  // As ::ppoll().
  virtual int wait(std::span<pollfd> what, std::int64_t limit_ns) = 0;
};

// The system's. Never null.
[[nodiscard]] mesh_ground* solid_ground() noexcept;

}  // namespace strata::net::tcp

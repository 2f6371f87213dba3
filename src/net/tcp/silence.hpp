// SPDX-License-Identifier: Apache-2.0
// Whether the network still carries something to the other end of a connection.
#pragma once
#include <cstdint>

namespace strata::net::tcp {

// Of one connection. What was sent is repeated again and again, and the other end's kernel says
// nothing, not even that its process reads nothing. The kernel itself waits for that for a quarter
// of an hour, and TCP_USER_TIMEOUT would count also the time for which a process that computes, or
// is stopped, reads nothing.
class silence {
 public:
  // To be called again and again; true: it has lasted for limit_ns.
  [[nodiscard]] bool lasts(int fd, std::int64_t now_ns, std::int64_t limit_ns) noexcept;
  // What the kernel knows of the connection.
  struct state {
    bool repeats;             // something is sent again that nothing has answered
    std::int64_t unheard_ns;  // for so long nothing has been acknowledged
  };
  [[nodiscard]] bool lasts(const state& s, std::int64_t now_ns, std::int64_t limit_ns) noexcept;
  // It is another connection.
  void restart() noexcept { since_ns_ = looked_at_ns_ = none; }

 private:
  static constexpr std::int64_t none = -1;
  std::int64_t since_ns_ = none;
  std::int64_t looked_at_ns_ = none;
};

}  // namespace strata::net::tcp

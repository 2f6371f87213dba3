// SPDX-License-Identifier: Apache-2.0
// Calls of an object's node to all that follow it (followed.hpp), at once. Who has left has taken
// with it what it knew.
#pragma once
#include <cstdint>
#include <exception>
#include <vector>

#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/remote_thread.hpp"

namespace strata::messages {

template <auto Function, class... Arguments>
void begin_call(std::vector<remote_thread>& calls, node_id_t node, const Arguments&... arguments) {
  try {
    calls.emplace_back(on_node{node}, strata::call<Function>(arguments...));
  } catch (const node_left_error&) {
  }
}

inline void await_call(remote_thread& t) {
  try {
    t.join();
  } catch (const node_left_error&) {
  }
}

// Waits for them, but in a fiber.
template <auto Function>
void tell_of_end(const std::vector<node_id_t>& followers, std::uint64_t number) noexcept {
  try {
    std::vector<remote_thread> calls;
    calls.reserve(followers.size());
    for (const node_id_t n : followers) begin_call<Function>(calls, n, number);
    const bool waits = [] {
      try {
        strata::detail::require_stack();
      } catch (const misuse_error&) {
        return false;
      }
      return true;
    }();
    for (remote_thread& t : calls) {
      if (waits) {
        await_call(t);
      } else {
        t.detach();
      }
    }
  } catch (const std::exception&) {  // they keep an entry that nobody uses
  }
}

}  // namespace strata::messages

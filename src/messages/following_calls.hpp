// SPDX-License-Identifier: Apache-2.0
// Calls of an object's node to all that follow it (followed.hpp), at once. Who has left has taken
// with it what it knew.
#pragma once
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

}  // namespace strata::messages

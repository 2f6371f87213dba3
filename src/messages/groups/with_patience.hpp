// SPDX-License-Identifier: Apache-2.0
// What members of a group wait for must be said in the end: nobody would tell them that it is not.
#pragma once
#include "cluster/words/retry_without_memory.hpp"
#include "strata/detail/thread_core.hpp"

namespace strata::messages {

// Calls f() again until it finds memory, and lets other threads run meanwhile. By a thread.
template <class F>
auto with_patience(F&& f) {
  return cluster::retry_without_memory(f, [] { this_thread::yield(); });
}

}  // namespace strata::messages

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/words/retry_without_memory.hpp"
#include "cluster/words/surroundings.hpp"
#include "strata/runtime.hpp"

namespace strata::messages {

// A thread of `here` calls f(), however long there is no memory for that: others wait for what it
// does, and nobody would tell them that it is never done.
template <class F>
void run_for_others(cluster::local_node& here, const F& f) {
  detail::task* const t =
      cluster::retry_without_memory([&] { return new detail::detached_call<F>(f); });
  cluster::retry_without_memory([&] { here.run_soon(t); });
}

}  // namespace strata::messages

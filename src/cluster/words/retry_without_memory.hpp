// SPDX-License-Identifier: Apache-2.0
// What must not fail half-way for want of memory: others wait for it, here or on another node, and
// nobody would tell them.
#pragma once
#include <sched.h>

#include <new>

namespace strata::cluster {

// Calls f() again until it finds memory; others may give some back. It has done nothing when it
// throws bad_alloc. `wait` lets others run: of whoever may hold a lock, or handles messages, the
// system's threads.
template <class F, class Wait>
auto retry_without_memory(F&& f, Wait&& wait) {
  for (;;) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      wait();
    }
  }
}
template <class F>
auto retry_without_memory(F&& f) {
  return retry_without_memory(f, [] { sched_yield(); });
}

}  // namespace strata::cluster

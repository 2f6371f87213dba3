// SPDX-License-Identifier: Apache-2.0
#include "strata/synchronizers.hpp"

#include <string>

namespace strata {

void semaphore_handle::release(std::ptrdiff_t n) {
  if (n < 0) throw misuse_error("release() of " + std::to_string(n) + " units: a number from 0 on");
  if (!release_within(n, counting_semaphore<>::max()))
    throw misuse_error("release() of " + std::to_string(n) + " units: a semaphore has " +
                       std::to_string(counting_semaphore<>::max()) + " at most");
}

void lock_handle::unlock() {
  try {
    if (s_.release_within(1, 1)) return;
  } catch (const node_lost_error&) {  // whoever locks it is told as well
    return;
  }
  throw misuse_error("unlock() of a lock that nobody has: lock() it first");
}

void barrier_handle::require_arrived(const attempt& a, std::ptrdiff_t n) {
  if (a.has_arrived != 0) return;
  throw misuse_error("an arrival of " + std::to_string(n) + " at a barrier where " +
                     std::to_string(a.missing) +
                     " are missing in this phase: make it for as many as arrive");
}

}  // namespace strata

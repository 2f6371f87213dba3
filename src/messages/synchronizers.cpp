// SPDX-License-Identifier: Apache-2.0
#include "strata/synchronizers.hpp"

#include <string>

namespace strata {

void semaphore_handle::release(std::ptrdiff_t n) {
  if (n < 0) throw misuse_error("release() of " + std::to_string(n) + " units: a number from 0 on");
  s_.call<&put_back>(n);
}

void lock_handle::unlock() {
  try {
    s_.release();
  } catch (const node_lost_error&) {  // whoever locks it is told as well
  }
}

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// A threaded function with two fibers that are enabled together, so that one of them lies in the
// deque, and one after both. Three run.
#pragma once
#include <atomic>

#include "strata/fiber.hpp"

namespace strata::test {

struct enabled_together : threaded {
  std::atomic<int>* ran;
  slot_ptr done;
  void start() {
    sync(to_sptr(LEFT));
    sync(to_sptr(RIGHT));
  }
  void branch() {
    ++*ran;
    sync(to_sptr(LAST));
  }
  void last() {
    ++*ran;
    sync(done);
    terminate();
  }
  fiber<&enabled_together::branch> LEFT{this, 1}, RIGHT{this, 1};
  fiber<&enabled_together::last> LAST{this, 2};
};

}  // namespace strata::test

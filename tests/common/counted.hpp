// SPDX-License-Identifier: Apache-2.0
// A threaded function that counts that it has run.
#pragma once
#include <atomic>

#include "strata/fiber.hpp"

namespace strata::test {

struct counted : threaded {
  std::atomic<int>* ran;
  slot_ptr done;
  void start() {
    ++*ran;
    sync(done);
    terminate();
  }
};

}  // namespace strata::test

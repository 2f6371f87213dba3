// SPDX-License-Identifier: Apache-2.0
// Signals a slot many times, from wherever it runs.
#pragma once
#include "strata/fiber.hpp"

namespace strata::test {

struct signaller : threaded {
  slot_ptr target;
  int times;
  slot_ptr done;
  void start() {
    for (int i = 0; i < times; ++i) sync(target);
    sync(done);
    terminate();
  }
};

}  // namespace strata::test

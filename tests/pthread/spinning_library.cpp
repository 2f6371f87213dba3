// SPDX-License-Identifier: Apache-2.0
#include "spinning_library.hpp"

void spin_in_library(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_relaxed)) {
  }
}

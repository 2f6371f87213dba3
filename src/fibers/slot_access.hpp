// SPDX-License-Identifier: Apache-2.0
// Signals that come from another node: the same as strata::sync() and incr_sync(), but whoever
// delivers them is no worker and decides itself where the enabled task runs.
#pragma once
#include <cstdint>

#include "strata/detail/task.hpp"

namespace strata::detail {

class slot_access {
 public:
  // One signal to the slot at `s`. Returns the task that it enables, or null. Throws misuse_error.
  [[nodiscard]] static task* signal(void* s);
  static void increment(void* s, std::uint32_t more);
};

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// An asymmetric pair of fences. A fence between one party's store and its later load normally costs
// both parties; here the frequent party pays nothing and the rare one pays for both, with one
// system call that makes every other running thread of the process execute a full fence (Linux
// membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED).
#pragma once
#include <atomic>

#include "strata/detail/cpu.hpp"

namespace strata::detail {

struct asymmetric_fences {
  // The frequent side: keeps the compiler from reordering; the processor may still.
  static void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // A fence of the caller's own: what it did before, then what it looks at after.
  static void full() noexcept;
  // The rare side: after it returns, everything any thread did before its own light() is visible
  // here, and everything done here before is visible to what they do after it. About 20 us while
  // other threads run.
  static void heavy() noexcept;
  // False where the kernel refuses membarrier; then light() orders nothing and callers must take
  // their slow path always.
  static bool available() noexcept;
};

}  // namespace strata::detail

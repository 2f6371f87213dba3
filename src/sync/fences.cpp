// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/fences.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace strata::detail {
namespace {

long membarrier(int command) noexcept { return syscall(__NR_membarrier, command, 0, 0); }

}  // namespace

bool asymmetric_fences::available() noexcept {
  // Registration is for the whole process, and repeating it is harmless.
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return registered;
}

void asymmetric_fences::full() noexcept {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not know fences (and g++ warns of them); an exchange it does know.
  static std::atomic<int> stand_in{0};
  stand_in.exchange(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void asymmetric_fences::heavy() noexcept {
  // All there is to do when the frequent side takes its slow path anyway.
  full();
  if (available()) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace strata::detail

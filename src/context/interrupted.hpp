// SPDX-License-Identifier: Apache-2.0
// Where a signal came, out of what the kernel gives its handler.
#pragma once
#include <ucontext.h>

#include <cstdint>

namespace strata::detail {

struct interrupted {
  std::uintptr_t at;     // the next instruction
  std::uintptr_t stack;  // the stack pointer
};

// Of a handler's third argument. Async-signal-safe.
inline interrupted interrupted_by(const void* machine) noexcept {
  const auto& m = static_cast<const ucontext_t*>(machine)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(m.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(m.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {m.pc, m.sp};
#endif
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// What the kernel gives a signal's handler: where the signal came, and how it goes on afterwards.
#pragma once
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cstdint>

#include "os/system_call.hpp"

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

// By a handler that has let others run, and is about to return. The kernel would put back what the
// OS thread had blocked when it began, and where its signal stack was: others may have changed that
// since, or the handler goes on on another OS thread, and it is theirs. `held`: signals that this
// OS thread does not take until the handler has returned; bit n - 1 is signal n.
inline void keep_what_is_now(void* machine, std::uint64_t held = 0) noexcept {
  auto& m = *static_cast<ucontext_t*>(machine);
  // The kernel's own call: there is no room for the C library's larger set.
  (void)os::system_call(SYS_rt_sigprocmask, SIG_BLOCK, reinterpret_cast<long>(&held),
                        reinterpret_cast<long>(&m.uc_sigmask), sizeof held, 0, 0);
  (void)sigaltstack(nullptr, &m.uc_stack);
}

}  // namespace strata::detail

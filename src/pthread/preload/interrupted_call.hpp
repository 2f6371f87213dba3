// SPDX-License-Identifier: Apache-2.0
// A call of the kernel that a handler has interrupted, in what the handler is given of the machine.
#pragma once
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace strata::preload {

// With SA_RESTART, which workers need, an interrupted call is about to begin again (or to begin):
// it does not, and is said to have been interrupted. Not so the one that ends another handler: that
// one has interrupted the call, if there is one, and goes back to it.
inline void end_call(ucontext_t& at) noexcept {
#if defined(__x86_64__)
  constexpr unsigned char call[] = {0x0f, 0x05};
  auto& registers = at.uc_mcontext.gregs;
  if (std::memcmp(reinterpret_cast<const void*>(registers[REG_RIP]), call, sizeof call) != 0)
    return;
  if (registers[REG_RAX] == SYS_rt_sigreturn)
    return end_call(*reinterpret_cast<ucontext_t*>(registers[REG_RSP]));
  registers[REG_RIP] += sizeof call;
  registers[REG_RAX] = -EINTR;
#elif defined(__aarch64__)
  constexpr std::uint32_t call = 0xd4000001;
  auto& m = at.uc_mcontext;
  if (std::memcmp(reinterpret_cast<const void*>(m.pc), &call, sizeof call) != 0) return;
  if (m.regs[8] == SYS_rt_sigreturn)
    return end_call(*reinterpret_cast<ucontext_t*>(m.sp + sizeof(siginfo_t)));
  m.pc += sizeof call;
  m.regs[0] = static_cast<unsigned long long>(-EINTR);
#endif
}

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// A system call without the C library: also before that is ready, in signal handlers, and in a
// child that uses its parent's memory.
#pragma once

namespace strata::os {

/// What the kernel answers; an error is its number, negative, from -4095 on. errno stays as it is.
inline long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  long answer;
  asm volatile("syscall"
               : "=a"(answer)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return answer;
#elif defined(__aarch64__)
  register long which __asm__("x8") = number;
  register long answer __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  register long fifth __asm__("x4") = e;
  register long sixth __asm__("x5") = f;
  asm volatile("svc 0"
               : "+r"(answer)
               : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory");
  return answer;
#else
#error "add this processor's system call here"
#endif
}

}  // namespace strata::os

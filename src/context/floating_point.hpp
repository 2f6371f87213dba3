// SPDX-License-Identifier: Apache-2.0
// The floating-point environment: how results are rounded, what traps, and which exceptions have
// occurred. To C11, C++ and POSIX it is a thread's own, and a new thread begins with its maker's;
// the processor has one. Of programs that are run as they are, whoever changes stacks takes it
// along. Registers are compared, and written only where they differ, which is seldom and expensive:
// see docs/decisions/0002-context-switch.md.
#pragma once
#include <cstdint>

namespace strata::detail {

class floating_point {
 public:
  // The calling OS thread's, as it is now.
  [[gnu::always_inline]] static inline floating_point here() noexcept;
  // Makes it the calling OS thread's.
  [[gnu::always_inline]] inline void put() const noexcept { put_over(here()); }
  // The same, but which exceptions have occurred is left as it is.
  [[gnu::always_inline]] inline void put_modes() const noexcept;

 private:
  [[gnu::always_inline]] inline void put_over(const floating_point& now) const noexcept;
#if defined(__x86_64__)
  void put_x87() const noexcept;

  static constexpr std::uint32_t occurred = 0x3f;  // in both status words
  std::uint32_t sse_ = 0;                          // MXCSR: modes and what has occurred
  std::uint16_t x87_modes_ = 0;
  std::uint16_t x87_occurred_ = 0;
#elif defined(__aarch64__)
  std::uint64_t modes_ = 0;     // FPCR
  std::uint64_t occurred_ = 0;  // FPSR
#endif
};

#if defined(__x86_64__)

inline floating_point floating_point::here() noexcept {
  floating_point f;
  std::uint16_t status;
  asm volatile("stmxcsr %0" : "=m"(f.sse_));
  asm volatile("fnstcw %0" : "=m"(f.x87_modes_));
  asm volatile("fnstsw %0" : "=a"(status));
  f.x87_occurred_ = status & occurred;
  return f;
}

inline void floating_point::put_over(const floating_point& now) const noexcept {
  if (now.sse_ != sse_) [[unlikely]] {
    asm volatile("ldmxcsr %0" : : "m"(sse_) : "memory");
  }
  if (now.x87_modes_ != x87_modes_ || now.x87_occurred_ != x87_occurred_) [[unlikely]]
    put_x87();
}

inline void floating_point::put_modes() const noexcept {
  const floating_point now = here();
  floating_point wanted = now;
  wanted.sse_ = (sse_ & ~occurred) | (now.sse_ & occurred);
  wanted.x87_modes_ = x87_modes_;
  wanted.put_over(now);
}

#elif defined(__aarch64__)

inline floating_point floating_point::here() noexcept {
  floating_point f;
  asm volatile("mrs %0, fpcr" : "=r"(f.modes_));
  asm volatile("mrs %0, fpsr" : "=r"(f.occurred_));
  return f;
}

inline void floating_point::put_over(const floating_point& now) const noexcept {
  if (now.modes_ != modes_) [[unlikely]] {
    asm volatile("msr fpcr, %0" : : "r"(modes_) : "memory");
  }
  if (now.occurred_ != occurred_) [[unlikely]] {
    asm volatile("msr fpsr, %0" : : "r"(occurred_) : "memory");
  }
}

inline void floating_point::put_modes() const noexcept {
  const floating_point now = here();
  floating_point wanted = now;
  wanted.modes_ = modes_;
  wanted.put_over(now);
}

#endif

// Where `Kept`: what comes back to this place has the floating-point environment with which it
// left, on whatever OS thread. Else nothing.
template <bool Kept>
class own_floating_point {
 public:
  [[gnu::always_inline]] inline own_floating_point() noexcept : own_(floating_point::here()) {}
  [[gnu::always_inline]] inline ~own_floating_point() { own_.put(); }
  own_floating_point(const own_floating_point&) = delete;
  own_floating_point& operator=(const own_floating_point&) = delete;

 private:
  const floating_point own_;
};
template <>
class own_floating_point<false> {};

}  // namespace strata::detail

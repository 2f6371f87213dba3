// SPDX-License-Identifier: Apache-2.0
// What every hot path needs to know of the processor and of the sanitizer it is watched by.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define STRATA_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STRATA_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define STRATA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRATA_ASAN 1
#endif
#endif

namespace strata::detail {

inline constexpr std::size_t line_bytes = 64;  // of a cache

// Two lines, because the adjacent-line prefetcher of x86-64 pulls pairs: what two workers write
// must not share a pair.
inline constexpr std::size_t destructive_bytes = 2 * line_bytes;

inline std::uintptr_t stack_pointer() noexcept {
#if defined(__x86_64__)
  std::uintptr_t sp;
  asm("movq %%rsp, %0" : "=r"(sp));
  return sp;
#else
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
#endif
}

// Brings the line of p near, if there is one. The statement that does nothing is an effect: g++ 12
// leaves out calls of functions that do nothing but fetch.
inline void prefetch(const void* p) noexcept {
  __builtin_prefetch(p);
  asm volatile("");
}
// The same for a line that is to be changed: others lose it at once, and not when it is.
inline void prefetch_to_write(const void* p) noexcept {
#if defined(__x86_64__)
  // Compilers leave it out for processors of before 2014, to which it means nothing.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));
#else
  __builtin_prefetch(p, 1);
  asm volatile("");
#endif
}

}  // namespace strata::detail

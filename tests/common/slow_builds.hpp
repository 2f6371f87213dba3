// SPDX-License-Identifier: Apache-2.0
// How much a build that checks more can repeat.
#pragma once
#include "strata/detail/cpu.hpp"

namespace strata::test {

#if defined(STRATA_TSAN)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
#if defined(STRATA_ASAN)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#if defined(__OPTIMIZE__)
inline constexpr bool slow_build = thread_sanitizer || address_sanitizer;
#else
inline constexpr bool slow_build = true;  // its stack frames are larger too
#endif

// Sanitizers make everything slower and every stack frame larger.
template <class T>
constexpr T scaled(T normal, T sanitized) {
  return slow_build ? sanitized : normal;
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Time, in nanoseconds and in the processor's own ticks. Code above os/ that must also run on a
// simulated clock takes a clock as an argument; this is the real one.
#pragma once

#include <cstdint>
#include <ctime>

namespace strata::os {

/// Nanoseconds since some fixed moment of the past; monotonic, the same on every core. About 20 ns;
/// never blocks.
inline std::int64_t now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The processor's constant-rate counter: about 10 ns, not serialising (instructions around it may
/// move across). Differences are meaningful across cores of one machine with a synchronised counter
/// (x86-64 "invariant TSC", every AArch64).
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  // As __rdtsc(), without <x86intrin.h>: many files would read it, for 0.4 s each.
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(now_ns());
#endif
}

/// Nanoseconds in one tick. Measured from the start of the process to the call and then kept, so it
/// is better than 100 ppm and costs nothing at start-up; called within the first 2 ms of the
/// process it blocks until they are over.
double ns_per_tick();

/// As many ticks as `ns` nanoseconds are. Blocks as ns_per_tick() does.
inline std::uint64_t to_ticks(std::int64_t ns) {
  return static_cast<std::uint64_t>(static_cast<double>(ns) / ns_per_tick());
}

/// Tells the core that this thread spins: frees the sibling hyper-thread and saves power. Use it in
/// every bounded spin.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" is a no-op on most cores
#endif
}

}  // namespace strata::os

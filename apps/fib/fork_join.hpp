// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <strata/call.hpp>

namespace fib {

inline std::uint64_t fork_join(unsigned n);

// Takes n, as the left branch does: one value for both branches is one register less to save, a
// tenth of what a call costs.
inline std::uint64_t second(unsigned n) { return fork_join(n - 2); }

inline std::uint64_t fork_join(unsigned n) {
  if (n < 2) return n;
  const auto [a, b] = strata::fork2join([n] { return fork_join(n - 1); }, strata::call<second>(n));
  return a + b;
}

}  // namespace fib

// SPDX-License-Identifier: Apache-2.0
// What the programs here share: each checks its results, and prints "ok" on node 0.
#pragma once
#include <cstdint>
#include <cstdio>
#include <exception>

#include "../common/require.hpp"
#include "strata/runtime.hpp"

namespace programs {

using strata::test::require;

// G. Steele, D. Lea, C. Flood, 2014, doi:10.1145/2714064.2660195.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

template <class F>
int run(int argc, char** argv, F work) {
  try {
    strata::runtime runtime(argc, argv);
    runtime.run(work);
    std::puts("ok");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace programs

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "../common/slow_builds.hpp"
#include "strata/detail/task.hpp"

namespace strata::test {

// Fixed seeds, which have to pass for ever, and a fresh one; or only the one in STRATA_TEST_SEED,
// to see a failure again.
inline std::vector<std::uint64_t> seeds() {
  if (const char* wanted = std::getenv("STRATA_TEST_SEED"))
    return {std::strtoull(wanted, nullptr, 10)};
  // A simulation has one thread.
  if (thread_sanitizer) return {1, std::random_device{}()};
  // Each takes it seven times as long, and the other builds run all.
  if (address_sanitizer) return {1, 2, std::random_device{}()};
  return {1, 2, 3, 4, 5, std::random_device{}()};
}

// What a simulated task takes, where that does not matter.
inline std::int64_t two_microseconds(const detail::task&) { return 2'000; }

// Printed first, so that a crash can be replayed as well.
#define STRATA_WITH_SEED(seed)                                                   \
  std::printf("STRATA_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed)); \
  std::fflush(stdout);                                                           \
  SCOPED_TRACE("STRATA_TEST_SEED=" + std::to_string(seed))

}  // namespace strata::test

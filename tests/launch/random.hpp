// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace launch_test {

// A fresh seed, or the one to be replayed; printed first.
inline std::mt19937_64 seeded_random() {
  const char* const replayed = std::getenv("LAUNCH_TEST_SEED");
  const std::uint64_t seed =
      replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : std::random_device()();
  std::printf("LAUNCH_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return std::mt19937_64(seed);
}

inline std::string random_bytes(std::mt19937_64& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace launch_test

// SPDX-License-Identifier: Apache-2.0
// Pseudo-random numbers that a seed determines. Source: S. Vigna, splitmix64 (public domain
// algorithm), after G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
// 2014 (doi:10.1145/2714064.2660195).
#pragma once
#include <cstdint>

namespace strata {

class prng {
 public:
  explicit constexpr prng(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // 0 to n - 1; n is at least 1 and less than 2^32. The bias is below n / 2^32.
  constexpr std::uint64_t below(std::uint64_t n) noexcept { return ((next() >> 32) * n) >> 32; }

  // 0 to 1, without 1.
  constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// What is sorted, and what is known of it: key i is the upper half of the i-th number of SplitMix64
// with seed 42.
namespace radixsort {

using key = std::uint32_t;
// Of a cache line.
inline constexpr std::size_t line_keys = 64 / sizeof(key);

// 2^28 keys are 1 GiB, and as much again to sort them into. Positions fit 32 bits with room to
// spare.
inline constexpr unsigned keys_log2_max = 28;

std::vector<key> draw_keys(unsigned keys_log2);

// Enough to tell a sorted array from one that lost, doubled, changed or swapped a key.
struct summary {
  std::uint64_t sum = 0;
  std::uint64_t fnv1a64 = 0;  // over the keys' bytes, lowest first: depends on the order
  bool ordered = true;
  bool operator==(const summary&) const = default;
};
summary summary_of(std::span<const key> keys);

// What sorting draw_keys(keys_log2) must give, and whether that is a published value. If not, it
// is worked out with std::sort.
struct truth {
  summary sorted;
  bool published = false;
};
truth truth_of(unsigned keys_log2);

}  // namespace radixsort

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "apps/radixsort/keys.hpp"

// The two loops over keys that all the time goes into: how often each digit occurs, and moving keys
// to where their digits belong. They know nothing of threads.
namespace radixsort {

inline constexpr unsigned radix_bits_max = 10;

// How many keys, or where one goes: both are below 2^28.
using position = std::uint32_t;

struct digit_loops {
  // counts[d] = number of keys whose digit at `shift` is d, for every d below the radix.
  void (*count)(std::span<const key> keys, unsigned shift, position* counts) noexcept;
  // Moves keys in order: the first with digit d goes to to[first[d]], the next to the place after.
  void (*move)(std::span<const key> keys, unsigned shift, const position* first, key* to) noexcept;
};

// For digits of this many bits, 1 to radix_bits_max: the fastest that this processor has.
const digit_loops& loops_for(unsigned radix_bits);

// Those that every processor has.
const digit_loops& plain_loops_for(unsigned radix_bits);

}  // namespace radixsort

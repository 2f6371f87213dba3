// SPDX-License-Identifier: Apache-2.0
// Contents of messages that follow from a number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "require.hpp"

namespace strata::test {

// At most Most bytes. A window of one sequence: copied, since computing each anew takes sanitizers
// longer than what is tested, and a copy is something that they see.
template <std::size_t Most>
std::vector<std::byte> known_bytes(std::size_t number, std::size_t size) {
  static constexpr std::size_t windows = 1U << 16;
  require(size <= Most, "known bytes of so many");
  static const std::vector<std::byte> sequence = [] {
    std::vector<std::byte> bytes((windows + Most + sizeof(std::uint64_t)) / sizeof(std::uint64_t) *
                                 sizeof(std::uint64_t));
    // Word by word: sanitizers count accesses.
    prng random(1);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      std::memcpy(&bytes[i], &word, sizeof word);
    }
    return bytes;
  }();
  const auto begin = sequence.begin() + static_cast<std::ptrdiff_t>(number % windows);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

// In one look, as operator== of vectors of std::byte is not.
inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// The same: each is as the one after it.
inline bool all_are(std::byte value, std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes.front() == value &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Contents of messages that follow from a number.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "require.hpp"

namespace strata::test {

// Bytes that look random, for not much more than a copy of them: sanitizers count accesses, and
// each process that sends wants some. All after the first ones is copied from what is there, each
// time from another odd place on, so that no chunk of a transfer is as the one before it.
inline std::unique_ptr<std::byte[]> random_looking(std::size_t size) {
  static constexpr std::size_t made_first = std::size_t{64} << 10, skipped = 7919;
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(std::max(size, made_first));
  strata::prng random(1);  // ours may be another one
  for (std::size_t i = 0; i < made_first; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  std::size_t there = made_first;
  for (std::size_t from = skipped; there < size; from = (from + skipped) % made_first) {
    const std::size_t more = std::min(size - there, there - from);
    std::memcpy(&bytes[there], &bytes[from], more);
    there += more;
  }
  return bytes;
}

// At most Most bytes. A window of one sequence: copied, since computing each anew takes sanitizers
// longer than what is tested, and a copy is something that they see.
template <std::size_t Most>
std::vector<std::byte> known_bytes(std::size_t number, std::size_t size) {
  static constexpr std::size_t windows = 1U << 16;
  require(size <= Most, "known bytes of so many");
  static const std::unique_ptr<std::byte[]> sequence = random_looking(windows + Most);
  const std::byte* const begin = &sequence[number % windows];
  return {begin, begin + size};
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

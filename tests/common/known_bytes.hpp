// SPDX-License-Identifier: Apache-2.0
// Contents of messages that follow from a number.
#pragma once
#include <cstddef>
#include <vector>

#include "require.hpp"

namespace strata::test {

// At most Most bytes. A window of one sequence: copied, since computing each anew takes sanitizers
// longer than what is tested, and a copy is something that they see.
template <std::size_t Most>
std::vector<std::byte> known_bytes(std::size_t number, std::size_t size) {
  static constexpr std::size_t windows = 1U << 16;
  require(size <= Most, "known bytes of so many");
  static const std::vector<std::byte> sequence = [] {
    std::vector<std::byte> bytes(windows + Most);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(i * 0x9E3779B1u >> 24);
    return bytes;
  }();
  const auto begin = sequence.begin() + static_cast<std::ptrdiff_t>(number % windows);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace strata::test

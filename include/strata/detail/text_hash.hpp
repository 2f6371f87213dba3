// SPDX-License-Identifier: Apache-2.0
// A hash of text that is the same in every process: FNV-1a.
#pragma once
#include <cstdint>
#include <string_view>

namespace strata::detail {

constexpr std::uint64_t text_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace strata::detail

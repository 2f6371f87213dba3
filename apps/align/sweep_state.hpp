// SPDX-License-Identifier: Apache-2.0
// What a sweep keeps between tiles. `bytes` says in which format: score - 128 in bytes at the front
// of the memory, or 32-bit scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "apps/align/sweep.hpp"

namespace align {

/// The lanes of a strip between two of its tiles; owned by whichever tile of the strip runs.
struct sweep::state {
  std::unique_ptr<std::int32_t[]> values;
  bool bytes = false;
};

/// Between the tile above and the tile below: H, then (at `gap`) the vertical-gap candidate.
struct sweep::border {
  std::byte* data = nullptr;
  bool bytes = false;

  [[nodiscard]] std::int8_t* narrow() const { return reinterpret_cast<std::int8_t*>(data); }
  [[nodiscard]] std::int32_t* wide() const { return reinterpret_cast<std::int32_t*>(data); }
};

}  // namespace align

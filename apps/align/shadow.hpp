// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "apps/align/covered_columns.hpp"
#include "apps/align/sweep.hpp"
#include "apps/align/tile_bounds.hpp"

namespace align {

/// The tiles that a hit darkens: those connected with its columns whose bound is high.
struct shadow {
  interval columns;
  interval left_strips, right_strips;  ///< with such columns left and right of the hit
};

/// That of a hit with the columns `taken`, where bounds above `dark_score` are high. None: it
/// reaches no further than they do.
std::optional<shadow> find_shadow(const sweep& whole, const tile_bounds& bounds, interval taken,
                                  std::int32_t dark_score);

}  // namespace align

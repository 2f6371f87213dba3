// SPDX-License-Identifier: Apache-2.0
// Where further hits are looked for, and sweeps of parts of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/align/covered_columns.hpp"
#include "apps/align/driver.hpp"
#include "apps/align/hits.hpp"
#include "apps/align/tile_bounds.hpp"

namespace align {

/// Sweeps rows [first of strip `top`, row_end) of some columns. The window's tiles are the field's
/// own, cut at its border; block k of the field is block k - skipped of the window.
struct window {
  std::unique_ptr<sweep> tiles;
  int top = 0, skipped = 0;
  std::ptrdiff_t row = 0, column = 0;

  [[nodiscard]] std::int32_t maximum(int strip, int block) const {
    const int r = strip - top, c = block - skipped;
    return tiles->exists(r, c) ? tiles->tile_maximum(r, c) : 0;
  }
};

/// What may come into a window, and the one tile that is asked for; -1: none.
struct window_options {
  std::int32_t top_border = 0;
  std::vector<std::int32_t> left_borders = {};
  int only_strip = -1, only_block = -1;
};

/// The fields, the columns that hits cover, and what each tile can offer at most beside those.
struct hit_ground {
  hit_ground(const std::vector<field>& compared, letters_view reference, const scoring& s,
             std::int32_t at_least, const driver& d);

  const std::vector<field>& fields;
  const letters_view ref;
  const scoring score;
  const std::int32_t least;
  driver how;  // without progress: nobody knows how much there is
  covered_columns covered;
  std::vector<tile_bounds> bounds;  // of each field

  /// Not run yet.
  [[nodiscard]] window make_window(std::size_t f, int top, std::ptrdiff_t row_end, interval columns,
                                   window_options more) const;

  /// What may come into each of some strips from the column left of `begin`; nothing if that is
  /// where the free columns begin. The first row of a strip also sees the last one of the strip
  /// above.
  [[nodiscard]] std::vector<std::int32_t> entering_from_left(std::size_t f, int first_strip,
                                                             int last_strip, std::ptrdiff_t begin,
                                                             std::ptrdiff_t free_begin) const;
};

}  // namespace align

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "apps/mapview/picture.hpp"

namespace mapview {

// Part of a picture, in its pixels and fractions of them.
struct part {
  double x = 0, y = 0, width = 0, height = 0;
};
// `of` scaled to the size of `into`'s area (x, y, width, height): each pixel is the mean of what it
// covers.
void draw_scaled(const picture& from, const part& of, picture& into, std::uint32_t x,
                 std::uint32_t y, std::uint32_t width, std::uint32_t height);

// Half of a picture, odd sizes rounded up, drawn into `into` from (x, y) on: each pixel is the mean
// of up to four. Those of the last column and of the last row of `from` count `last_column` and
// `last_row` of what others do, for so much of them lies within what they show; more than 0, at
// most 1. Halved again and again, a picture becomes neither lighter nor darker.
void draw_halved(const picture& from, double last_column, double last_row, picture& into,
                 std::uint32_t x, std::uint32_t y);

}  // namespace mapview

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

}  // namespace mapview

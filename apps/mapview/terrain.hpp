// SPDX-License-Identifier: Apache-2.0
// A landscape that nobody has to store: seas, plains, mountains and their light follow from where
// one looks.
#pragma once
#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"

namespace mapview {

// What of a terrain of so many pixels lies in `area`.
[[nodiscard]] picture draw_terrain(std::uint32_t width, std::uint32_t height,
                                   const rectangle& area);

}  // namespace mapview

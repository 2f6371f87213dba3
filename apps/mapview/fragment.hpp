// SPDX-License-Identifier: Apache-2.0
// What one tile contributes to a window.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"

namespace mapview {

// A region of the map, to be shown in a window of so many pixels.
struct view {
  rectangle region;
  std::uint32_t width = 0, height = 0;
};

struct tile_place {
  std::uint32_t column = 0, row = 0;
};

// All tiles of which the region shows something, row by row.
struct tile_grid {
  std::uint32_t column = 0, row = 0;  // the first
  std::uint32_t columns = 0, rows = 0;

  [[nodiscard]] std::uint32_t size() const { return columns * rows; }  // see tiles_max
  [[nodiscard]] tile_place at(std::uint32_t i) const {
    return {column + i % columns, row + i / columns};
  }
};
[[nodiscard]] tile_grid grid_of(const map_info& map, const rectangle& region);
[[nodiscard]] std::vector<tile_place> tiles_of(const map_info& map, const rectangle& region);

// The window's pixels that a tile fills. Those of all tiles cover the window, each pixel once; a
// tile may have none when the window is much smaller than the region.
[[nodiscard]] rectangle pixels_of(const map_info& map, const view& v, tile_place tile);

struct fragment {
  tile_place tile;
  rectangle pixels;      // of the window
  bool missing = false;  // no such file, or not a picture of the tile's size: drawn as a hatch
  picture shown;         // of that size
};

// Reads the tile, decodes it as small as it can be, and scales it.
[[nodiscard]] fragment load_fragment(const std::string& root, const map_info& map, const view& v,
                                     tile_place tile);

}  // namespace mapview

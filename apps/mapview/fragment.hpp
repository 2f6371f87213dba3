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

// Tiles of a level that form a rectangle, row by row.
struct tile_grid {
  tile_place first;
  std::uint32_t columns = 0, rows = 0;

  [[nodiscard]] std::uint32_t size() const { return columns * rows; }  // see tiles_max
  [[nodiscard]] tile_place at(std::uint32_t i) const {
    return {first.column + i % columns, first.row + i / columns, first.level};
  }
  [[nodiscard]] bool contains(tile_place t) const {
    return t.level == first.level && t.column >= first.column && t.row >= first.row &&
           t.column - first.column < columns && t.row - first.row < rows;
  }
  // Of one that it contains.
  [[nodiscard]] std::uint32_t number_of(tile_place t) const {
    return (t.row - first.row) * columns + t.column - first.column;
  }
};
// All of that level of which the region shows something.
[[nodiscard]] tile_grid grid_of(const map_info& map, const rectangle& region, std::uint32_t level);
// Of level 0.
[[nodiscard]] std::vector<tile_place> tiles_of(const map_info& map, const rectangle& region);

// The smallest level of the map that has at least as many pixels each way as the window.
[[nodiscard]] std::uint32_t level_for(const map_info& map, const view& v);

// The window's pixels that a tile fills. Those of all tiles of a level cover the window, each pixel
// once; those of the tiles below a tile cover what it fills. A tile may have none when the window
// is much smaller than the region.
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

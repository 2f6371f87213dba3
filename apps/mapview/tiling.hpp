// SPDX-License-Identifier: Apache-2.0
// What is the same however a map's tiles come about.
#pragma once
#include <cstdint>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"

namespace mapview {

[[nodiscard]] picture cut(const picture& from, const rectangle& area);
void paste(const picture& p, picture& into, std::uint32_t x, std::uint32_t y);

// How much of the last pixel of a level lies in the map, where `length` pixels of that are shown.
[[nodiscard]] double last_of(std::uint32_t length, std::uint32_t level);

// Whether each tile can be halved alone. Tiles of odd sizes end within a pixel of the next level.
[[nodiscard]] inline bool halve_alone(const map_info& map) {
  return map.tile_width % 2 == 0 && map.tile_height % 2 == 0;
}

class map_folder;

struct tile_writer {
  map_folder& folder;
  const map_info& map;
  int quality;

  // Throws strata::user_error. Any thread, each tile once.
  void operator()(tile_place tile, const picture& p) const;
};

}  // namespace mapview

// SPDX-License-Identifier: Apache-2.0
// Cuts a picture, or a terrain, into a map.
#pragma once
#include <cstdint>
#include <string>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture_rows.hpp"
#include "apps/mapview/tidy_end.hpp"

namespace mapview {

// How many smaller copies a map gets unless told otherwise: of at most so many tiles none, as it is
// shown quickly enough; else down to a single tile.
inline constexpr std::uint64_t tiles_without_levels_max = 1000;
[[nodiscard]] std::uint32_t usual_levels(const map_info& map);

struct map_making {
  int quality = 85;         // of the tiles
  bool replace = false;     // the map that lies there; see map_folder
  tidy_end* end = nullptr;  // that of the process by a signal: what was written by then is removed
};

// Writes all tiles of all levels, each by a task, and at the end map.json: without it there is no
// map. A smaller level is made from the pixels of the larger one while those are at hand. Of a
// terrain (`from` is null) a worker holds a few tiles for each level, of a picture, which has the
// size of the map, rows of tiles are held: see write_strips(). However large the map is. Within the
// runtime. Throws strata::user_error; what was written by then is removed.
void make_map(const std::string& root, const map_info& map, picture_rows* from,
              const map_making& how);

}  // namespace mapview

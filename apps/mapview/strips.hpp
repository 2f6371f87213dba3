// SPDX-License-Identifier: Apache-2.0
// Cuts a picture that comes row by row into the tiles of all levels.
#pragma once
#include "apps/mapview/picture_rows.hpp"
#include "apps/mapview/tiling.hpp"

namespace mapview {

// One row of tiles is held of each level (two with tiles of odd sizes), and the next one of the
// full size is read while the tiles of this one are written, each by a task: at most
// 9 bytes x width x tile height for all levels together, 15 with odd sizes, and a few tiles for
// each worker, however high the picture is. Within the runtime. Throws what `from` and `write`
// throw; tiles that were written by then are there.
void write_strips(const map_info& map, picture_rows& from, const tile_writer& write);

}  // namespace mapview

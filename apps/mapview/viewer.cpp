// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/viewer.hpp"

#include <algorithm>
#include <cstring>
#include <strata/error.hpp>
#include <string>
#include <tuple>

namespace mapview {
namespace {

rectangle intersection(const rectangle& a, const rectangle& b) {
  const std::uint32_t x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  return {x, y, std::min(a.x + a.width, b.x + b.width) - x,
          std::min(a.y + a.height, b.y + b.height) - y};
}

bool row_by_row(const tile_place& a, const tile_place& b) {
  return std::tie(a.row, a.column) < std::tie(b.row, b.column);
}

}  // namespace

viewer::shown viewer::show(const view& v, const effort& most) {
  const rectangle& r = v.region;
  if (r.width == 0 || r.height == 0 || r.x >= map_.width || r.y >= map_.height ||
      r.width > map_.width - r.x || r.height > map_.height - r.y) {
    throw strata::user_error("region " + std::to_string(r.x) + "," + std::to_string(r.y) + "," +
                             std::to_string(r.width) + "," + std::to_string(r.height) +
                             " is not inside the map, which has " + std::to_string(map_.width) +
                             "x" + std::to_string(map_.height) + " pixels");
  }
  if (v.width == 0 || v.height == 0 || v.width > 16'384 || v.height > 16'384)
    throw strata::user_error("a window must have 1 to 16384 pixels each way");
  shown s;
  s.window = picture(v.width, v.height);
  const tile_grid tiles = grid_of(map_, v.region, level_for(map_, v));
  if (tiles.size() > most.tiles)
    throw strata::user_error("a picture of more than " + std::to_string(most.tiles) +
                             " tiles; ask for a smaller region or window, or make the map again "
                             "with smaller copies (mapview make --levels auto --replace)");
  show_tiles(v, most, tiles, s);
  return s;
}

void viewer::show_tiles(const view& v, const effort& most, const tile_grid& tiles, shown& s) {
  std::vector<tile_place> missing;
  tiles_.load(v, tiles, [&](const fragment& f) {
    if (!most.is_awaited()) throw not_awaited();
    ++s.tiles;
    if (f.missing) missing.push_back(f.tile);
    // As this map and view have it, whatever a message says.
    if (f.pixels != pixels_of(map_, v, f.tile)) throw strata::error("a fragment of another view");
    for (std::uint32_t y = 0; y < f.pixels.height && f.pixels.width != 0; ++y)
      std::memcpy(s.window.at(f.pixels.x, f.pixels.y + y), f.shown.at(0, y),
                  std::size_t{3} * f.pixels.width);
  });
  const std::uint32_t level = tiles.first.level;
  std::vector<tile_place>& all = level == 0 ? s.missing : s.replaced;
  all.insert(all.end(), missing.begin(), missing.end());
  if (level == 0) return;
  // Neighbours in a row together: a loader likes many tiles at once.
  std::sort(missing.begin(), missing.end(), row_by_row);
  for (auto at = missing.begin(); at != missing.end();) {
    const auto first = at++;
    while (at != missing.end() && at->row == first->row && at->column == at[-1].column + 1) ++at;
    rectangle area = map_.area_of(*first);
    const rectangle last = map_.area_of(at[-1]);
    area.width = last.x + last.width - area.x;
    const tile_grid larger = grid_of(map_, intersection(area, v.region), level - 1);
    if (larger.size() <= most.tiles - s.tiles) show_tiles(v, most, larger, s);
  }
}

}  // namespace mapview

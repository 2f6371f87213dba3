// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/make.hpp"

#include <algorithm>
#include <optional>
#include <strata/fork_join.hpp>
#include <strata/parallel.hpp>

#include "apps/mapview/fragment.hpp"
#include "apps/mapview/map_folder.hpp"
#include "apps/mapview/scaling.hpp"
#include "apps/mapview/strips.hpp"
#include "apps/mapview/terrain.hpp"
#include "apps/mapview/tiling.hpp"

namespace mapview {
namespace {

// A smaller level from the pixels of the larger one while those are at hand.
class terrain_maker {
 public:
  terrain_maker(const map_info& map, const tile_writer& write) : map_(map), write_(write) {}

  // Writes the tile, and before it those of which it is made.
  picture make(tile_place tile) const {
    picture p = tile.level == 0 ? draw_terrain(map_.width, map_.height, map_.area_of(tile))
                                : halves_below(tile);
    write_(tile, p);
    return p;
  }

 private:
  [[nodiscard]] picture halves_below(tile_place tile) const {
    const std::uint32_t level = tile.level - 1;
    const rectangle area = map_.area_of(tile), in_level = map_.area_in_level(tile);
    picture p(in_level.width, in_level.height);
    const auto halve = [&](const picture& from, const rectangle& shown, std::uint32_t x,
                           std::uint32_t y) {
      draw_halved(from, last_of(shown.width, level), last_of(shown.height, level), p, x, y);
    };
    const tile_grid below = grid_of(map_, area, level);
    if (halve_alone(map_)) {
      each(below, [&](tile_place t) {
        const rectangle to = map_.area_in_level(t);
        halve(make(t), map_.area_of(t), to.x / 2 - in_level.x, to.y / 2 - in_level.y);
      });
    } else {
      const auto length = [&](std::uint32_t at, std::uint32_t pixels, std::uint32_t most) {
        return std::min(2 * pixels, most - 2 * at);
      };
      picture all(length(in_level.x, in_level.width, map_.width_at(level)),
                  length(in_level.y, in_level.height, map_.height_at(level)));
      each(below, [&](tile_place t) {
        const rectangle to = map_.area_in_level(t);
        paste(make(t), all, to.x - 2 * in_level.x, to.y - 2 * in_level.y);
      });
      halve(all, area, 0, 0);
    }
    return p;
  }

  // The four, fewer at the edges, at the same time. A worker goes down to the end of one before it
  // begins another, so that few are half made; a thief takes the largest that there is.
  template <class Body>
  static void each(const tile_grid& tiles, const Body& body) {
    const auto row = [&](std::uint32_t first) {
      if (tiles.columns == 1) return body(tiles.at(first));
      strata::fork2join([&] { body(tiles.at(first)); }, [&] { body(tiles.at(first + 1)); });
    };
    if (tiles.rows == 1) return row(0);
    strata::fork2join([&] { row(0); }, [&] { row(tiles.columns); });
  }

  const map_info& map_;
  const tile_writer& write_;
};

}  // namespace

std::uint32_t usual_levels(const map_info& map) {
  return map.tiles() > tiles_without_levels_max ? last_level(map) : 0;
}

void make_map(const std::string& root, const map_info& map, picture_rows* from,
              const map_making& how) {
  map_folder folder(root);
  std::optional<tidy_end::task> at_a_signal;
  if (how.end != nullptr) at_a_signal.emplace(*how.end, [&] { folder.give_up(); });
  folder.prepare(map.folders, how.replace);
  const tile_writer write{folder, map, how.quality};
  if (from != nullptr) {
    write_strips(map, *from, write);
  } else {
    const terrain_maker maker(map, write);
    const tile_grid top{{0, 0, map.levels}, map.columns(map.levels), map.rows(map.levels)};
    strata::parallel_for(std::uint32_t{0}, top.size(),
                         [&](std::uint32_t i) { (void)maker.make(top.at(i)); });
  }
  folder.finish(map);
}

}  // namespace mapview

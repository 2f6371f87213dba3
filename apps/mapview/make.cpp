// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/make.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <strata/error.hpp>
#include <strata/fork_join.hpp>
#include <strata/parallel.hpp>
#include <vector>

#include "apps/common/output_file.hpp"
#include "apps/mapview/fragment.hpp"
#include "apps/mapview/scaling.hpp"
#include "apps/mapview/terrain.hpp"

namespace mapview {
namespace {

picture cut(const picture& from, const rectangle& area) {
  picture p(area.width, area.height);
  for (std::uint32_t y = 0; y < area.height; ++y)
    std::memcpy(p.at(0, y), from.at(area.x, area.y + y), std::size_t{3} * area.width);
  return p;
}

void paste(const picture& p, picture& into, std::uint32_t x, std::uint32_t y) {
  for (std::uint32_t j = 0; j < p.height; ++j)
    std::memcpy(into.at(x, y + j), p.at(0, j), std::size_t{3} * p.width);
}

class map_maker {
 public:
  map_maker(const std::string& root, const map_info& map, const picture* from, int quality)
      : root_(root), map_(map), from_(from), quality_(quality) {}

  // Writes the tile, and before it those of which it is made.
  picture make(tile_place tile) const {
    picture p = tile.level == 0 ? source(map_.area_of(tile)) : halves_below(tile);
    const std::vector<unsigned char> bytes = encode_jpeg(p, quality_);
    apps::output_file out(tile_path(root_, map_, tile));
    out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    out.commit();
    return p;
  }

 private:
  [[nodiscard]] picture source(const rectangle& area) const {
    return from_ != nullptr ? cut(*from_, area) : draw_terrain(map_.width, map_.height, area);
  }

  // How much of the last pixel lies in the map, where `length` pixels of that are shown.
  static double last_of(std::uint32_t length, std::uint32_t level) {
    const std::uint32_t rest = length % (std::uint32_t{1} << level);
    return rest == 0 ? 1 : std::ldexp(rest, -static_cast<int>(level));
  }

  [[nodiscard]] picture halves_below(tile_place tile) const {
    const std::uint32_t level = tile.level - 1;
    const rectangle area = map_.area_of(tile), in_level = map_.area_in_level(tile);
    picture p(in_level.width, in_level.height);
    const auto halve = [&](const picture& from, const rectangle& shown, std::uint32_t x,
                           std::uint32_t y) {
      draw_halved(from, last_of(shown.width, level), last_of(shown.height, level), p, x, y);
    };
    const tile_grid below = grid_of(map_, area, level);
    // Tiles of odd sizes end within a pixel of this level: they are put together first.
    if (map_.tile_width % 2 == 0 && map_.tile_height % 2 == 0) {
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

  const std::string& root_;
  const map_info& map_;
  const picture* const from_;
  const int quality_;
};

}  // namespace

std::uint32_t usual_levels(const map_info& map) {
  return map.tiles() > tiles_without_levels_max ? last_level(map) : 0;
}

void make_map(const std::string& root, const map_info& map, const picture* from, int quality) {
  namespace fs = std::filesystem;
  std::error_code problem;
  fs::remove(root + "/map.json", problem);
  if (problem)
    throw strata::user_error(root + "/map.json: cannot be removed: " + problem.message() +
                             "; choose another folder");
  for (std::uint32_t f = 0; f < map.folders; ++f) {
    fs::create_directories(folder_path(root, f), problem);
    if (problem)
      throw strata::user_error(folder_path(root, f) + ": cannot be made: " + problem.message());
  }
  const map_maker maker(root, map, from, quality);
  const tile_grid top{{0, 0, map.levels}, map.columns(map.levels), map.rows(map.levels)};
  strata::parallel_for(std::uint32_t{0}, top.size(),
                       [&](std::uint32_t i) { (void)maker.make(top.at(i)); });
  write_map(root, map);
}

}  // namespace mapview

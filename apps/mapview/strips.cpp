// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/strips.hpp"

#include <algorithm>
#include <array>
#include <strata/fork_join.hpp>
#include <strata/parallel.hpp>
#include <utility>
#include <vector>

#include "apps/mapview/scaling.hpp"

namespace mapview {
namespace {

class strip_cutter {
 public:
  strip_cutter(const map_info& map, picture_rows& from, const tile_writer& write)
      : map_(map), from_(from), write_(write), kept_(map.levels + 1) {}

  void run() {
    picture ahead;
    read(0, ahead);
    for (std::uint32_t row = 0; row < map_.rows(); ++row) {
      std::swap(kept(0, row), ahead);
      if (row + 1 == map_.rows()) {
        finish(0, row);
      } else {
        strata::fork2join([&] { read(row + 1, ahead); }, [&] { finish(0, row); });
      }
    }
  }

 private:
  void read(std::uint32_t row, picture& strip) {
    make_room(strip, 0);
    from_.read(strip.rgb.data(), height_of(0, row));
  }

  // Writes a row of tiles that is complete, and those of smaller levels that it completes.
  void finish(std::uint32_t level, std::uint32_t row) {
    const bool goes_on = level < map_.levels, alone = halve_alone(map_);
    const picture& strip = kept(level, row);
    if (goes_on) make_room(kept(level + 1, row / 2), level + 1);
    strata::parallel_for(std::uint32_t{0}, map_.columns(level), [&](std::uint32_t column) {
      const tile_place tile{column, row, level};
      const rectangle to = map_.area_in_level(tile);
      const picture p = cut(strip, {to.x, 0, to.width, to.height});
      write_(tile, p);
      if (!goes_on || !alone) return;
      // No two columns halve into the same bytes: tile widths are even.
      const rectangle shown = map_.area_of(tile);
      draw_halved(p, last_of(shown.width, level), last_of(shown.height, level),
                  kept(level + 1, row / 2), to.x / 2, row % 2 * (map_.tile_height / 2));
    });
    if (!goes_on || (row % 2 == 0 && row + 1 < map_.rows(level))) return;
    if (!alone) halve_together(level, row / 2);
    finish(level + 1, row / 2);
  }

  // Two rows of tiles, or the last one alone, become one of the next level.
  void halve_together(std::uint32_t level, std::uint32_t row) {
    picture& into = kept(level + 1, row);
    strata::parallel_for(std::uint32_t{0}, map_.columns(level + 1), [&](std::uint32_t column) {
      const tile_place tile{column, row, level + 1};
      const rectangle to = map_.area_in_level(tile), shown = map_.area_of(tile);
      const std::uint32_t upper = height_of(level, 2 * row);
      const std::uint32_t lower =
          2 * row + 1 < map_.rows(level) ? height_of(level, 2 * row + 1) : 0;
      picture all(std::min(2 * to.width, map_.width_at(level) - 2 * to.x), upper + lower);
      paste(cut(kept(level, 2 * row), {2 * to.x, 0, all.width, upper}), all, 0, 0);
      if (lower != 0)
        paste(cut(kept(level, 2 * row + 1), {2 * to.x, 0, all.width, lower}), all, 0, upper);
      draw_halved(all, last_of(shown.width, level), last_of(shown.height, level), into, to.x, 0);
    });
  }

  picture& kept(std::uint32_t level, std::uint32_t row) {
    return kept_[level][halve_alone(map_) ? 0 : row % 2];
  }
  [[nodiscard]] std::uint32_t height_of(std::uint32_t level, std::uint32_t row) const {
    return map_.area_in_level({0, row, level}).height;
  }
  void make_room(picture& strip, std::uint32_t level) const {
    if (strip.rgb.empty())
      strip = picture(map_.width_at(level), std::min(map_.tile_height, map_.height_at(level)));
  }

  const map_info& map_;
  picture_rows& from_;
  const tile_writer& write_;
  // Of each level, by the row's number: the lower of two goes where the upper one is still needed.
  std::vector<std::array<picture, 2>> kept_;
};

}  // namespace

void write_strips(const map_info& map, picture_rows& from, const tile_writer& write) {
  strip_cutter(map, from, write).run();
}

}  // namespace mapview

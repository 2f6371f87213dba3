// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/fragment.hpp"

#include <algorithm>
#include <cmath>
#include <strata/error.hpp>

#include "apps/mapview/file.hpp"
#include "apps/mapview/scaling.hpp"

namespace mapview {
namespace {

void hatch(picture& p) {
  for (std::uint32_t y = 0; y < p.height; ++y) {
    for (std::uint32_t x = 0; x < p.width; ++x) {
      const bool dark = (x + y) / 4 % 2 == 0;
      std::uint8_t* const to = p.at(x, y);
      to[0] = dark ? 160 : 230;
      to[1] = to[2] = dark ? 40 : 230;
    }
  }
}

// Of the file of a tile: more than any JPEG of its size takes, with what else such files hold.
std::size_t tile_bytes_max(const rectangle& tile) {
  return (std::size_t{16} << 20) + std::size_t{8} * tile.width * tile.height;
}

// Where map coordinate c of a region's axis lies in a window of `pixels`.
std::uint32_t window_at(std::uint32_t c, std::uint32_t begin, std::uint32_t length,
                        std::uint32_t pixels) {
  const std::uint32_t inside = std::clamp(c, begin, begin + length) - begin;
  return static_cast<std::uint32_t>(std::uint64_t{inside} * pixels / length);
}

}  // namespace

tile_grid grid_of(const map_info& map, const rectangle& region, std::uint32_t level) {
  const auto column = [&](std::uint32_t x) { return (x >> level) / map.tile_width; };
  const auto row = [&](std::uint32_t y) { return (y >> level) / map.tile_height; };
  const tile_place first{column(region.x), row(region.y), level};
  return {first, column(region.x + region.width - 1) - first.column + 1,
          row(region.y + region.height - 1) - first.row + 1};
}

std::vector<tile_place> tiles_of(const map_info& map, const rectangle& region) {
  const tile_grid grid = grid_of(map, region, 0);
  std::vector<tile_place> all(grid.size());
  for (std::uint32_t i = 0; i < grid.size(); ++i) all[i] = grid.at(i);
  return all;
}

std::uint32_t level_for(const map_info& map, const view& v) {
  const auto is_enough = [&](std::uint32_t level) {
    return std::uint64_t{v.width} << level <= v.region.width &&
           std::uint64_t{v.height} << level <= v.region.height;
  };
  std::uint32_t level = 0;
  while (level < map.levels && is_enough(level + 1)) ++level;
  return level;
}

rectangle pixels_of(const map_info& map, const view& v, tile_place tile) {
  const rectangle area = map.area_of(tile);
  const std::uint32_t x0 = window_at(area.x, v.region.x, v.region.width, v.width);
  const std::uint32_t x1 = window_at(area.x + area.width, v.region.x, v.region.width, v.width);
  const std::uint32_t y0 = window_at(area.y, v.region.y, v.region.height, v.height);
  const std::uint32_t y1 = window_at(area.y + area.height, v.region.y, v.region.height, v.height);
  return {x0, y0, x1 - x0, y1 - y0};
}

fragment load_fragment(const std::string& root, const map_info& map, const view& v,
                       tile_place tile) {
  fragment f{tile, pixels_of(map, v, tile), false, {}};
  f.shown = picture(f.pixels.width, f.pixels.height);
  if (f.pixels.width == 0 || f.pixels.height == 0) return f;
  const double across = static_cast<double>(v.region.width) / v.width;  // map pixels for each
  const double down = static_cast<double>(v.region.height) / v.height;
  const rectangle area = map.area_of(tile), whole = map.area_in_level(tile);
  const double pixel = std::ldexp(1.0, static_cast<int>(tile.level));  // of the level, in the map's
  try {
    const double scale = std::min(1.0, pixel * std::max(1 / across, 1 / down));
    const picture p =
        decode_jpeg(read_plain_file(tile_path(root, map, tile), tile_bytes_max(whole)), scale,
                    {whole.width, whole.height});
    const double sx = p.width / (whole.width * pixel), sy = p.height / (whole.height * pixel);
    const part of{(v.region.x + f.pixels.x * across - area.x) * sx,
                  (v.region.y + f.pixels.y * down - area.y) * sy, f.pixels.width * across * sx,
                  f.pixels.height * down * sy};
    draw_scaled(p, of, f.shown, 0, 0, f.pixels.width, f.pixels.height);
  } catch (const picture_error&) {
    f.missing = true;
  } catch (const strata::user_error&) {
    f.missing = true;
  }
  if (f.missing) hatch(f.shown);
  return f;
}

}  // namespace mapview

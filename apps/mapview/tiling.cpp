// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/tiling.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "apps/mapview/map_folder.hpp"

namespace mapview {

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

double last_of(std::uint32_t length, std::uint32_t level) {
  const std::uint32_t rest = length % (std::uint32_t{1} << level);
  return rest == 0 ? 1 : std::ldexp(rest, -static_cast<int>(level));
}

void tile_writer::operator()(tile_place tile, const picture& p) const {
  const std::vector<unsigned char> bytes = encode_jpeg(p, quality);
  folder.write(tile_path(folder.root(), map, tile),
               {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace mapview

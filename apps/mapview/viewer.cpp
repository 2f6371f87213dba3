// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/viewer.hpp"

#include <cstring>
#include <strata/error.hpp>
#include <string>

namespace mapview {

viewer::shown viewer::show(const view& v) {
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
  tiles_.load(v, [&](const fragment& f) {
    ++s.tiles;
    if (f.missing) s.missing.push_back(f.tile);
    // As this map and view have it, whatever a message says.
    if (f.pixels != pixels_of(map_, v, f.tile)) throw strata::error("a fragment of another view");
    for (std::uint32_t y = 0; y < f.pixels.height && f.pixels.width != 0; ++y)
      std::memcpy(s.window.at(f.pixels.x, f.pixels.y + y), f.shown.at(0, y),
                  std::size_t{3} * f.pixels.width);
  });
  return s;
}

}  // namespace mapview

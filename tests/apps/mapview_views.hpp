// SPDX-License-Identifier: Apache-2.0
// Views by chance, for what has to hold of all of them.
#pragma once
#include <random>

#include "apps/mapview/fragment.hpp"
#include "apps/mapview/map.hpp"

namespace apps_test {

// Any region of the map in any window of up to 200 x 200 pixels.
inline mapview::view any_view(std::mt19937& random, const mapview::map_info& map) {
  mapview::view v;
  v.region.x = random() % map.width;
  v.region.y = random() % map.height;
  v.region.width = 1 + random() % (map.width - v.region.x);
  v.region.height = 1 + random() % (map.height - v.region.y);
  v.width = 1 + random() % 200;
  v.height = 1 + random() % 200;
  return v;
}

}  // namespace apps_test

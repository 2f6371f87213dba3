// SPDX-License-Identifier: Apache-2.0
// Shows regions of a map in windows, whoever loads the tiles (the paper's imgViewer).
#pragma once
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {

class viewer {
 public:
  viewer(const map_info& map, loader& tiles) : map_(map), tiles_(tiles) {}

  struct shown {
    picture window;
    std::size_t tiles = 0;
    std::vector<tile_place> missing;
  };
  // Within the runtime. Throws strata::user_error for a region that is not of the map, or a window
  // of nothing.
  [[nodiscard]] shown show(const view& v);

 private:
  const map_info map_;
  loader& tiles_;
};

}  // namespace mapview

// SPDX-License-Identifier: Apache-2.0
// Shows regions of a map in windows, whoever loads the tiles (the paper's imgViewer).
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {

// Nobody waits for the picture any more.
class not_awaited : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "nobody waits for it"; }
};

// How far somebody who asks is to be trusted.
struct effort {
  std::uint64_t tiles = std::numeric_limits<std::uint64_t>::max();  // to be loaded at most
  std::function<bool()> is_awaited = [] { return true; };           // asked at each tile
};

class viewer {
 public:
  viewer(const map_info& map, loader& tiles) : map_(map), tiles_(tiles) {}

  struct shown {
    picture window;
    std::size_t tiles = 0;  // that were to be decoded for it
    // Of the full size: each is drawn as a hatch.
    std::vector<tile_place> missing;
    // Of smaller levels, which could not be read either: what they show comes from larger ones, as
    // far as there are such and it may load so many; the rest is a hatch.
    std::vector<tile_place> replaced;
  };
  // Of the smallest level that will do. Within the runtime. Throws strata::user_error for a region
  // that is not of the map, or a window of nothing, or where that takes more tiles than it may
  // though all are there; not_awaited.
  [[nodiscard]] shown show(const view& v, const effort& most = {});

 private:
  void show_tiles(const view& v, const effort& most, const tile_grid& tiles, shown& s);

  const map_info map_;
  loader& tiles_;
};

}  // namespace mapview

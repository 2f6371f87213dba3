// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/missing_tiles.hpp"

#include <cstdio>
#include <mutex>

namespace mapview {

void missing_tiles::note(const std::vector<tile_place>& missing) {
  if (missing.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const tile_place t : missing) {
    if (!known_.emplace(t.row, t.column).second || known_.size() > named_max + 1) continue;
    if (known_.size() > named_max) {
      std::fprintf(stderr, "mapview: and more tiles, which are not named any more\n");
    } else {
      std::fprintf(stderr, "mapview: no readable tile %s\n",
                   tile_path(root_, map_, t.column, t.row).c_str());
    }
  }
}

std::size_t missing_tiles::count() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace mapview

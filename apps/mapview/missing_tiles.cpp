// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/missing_tiles.hpp"

#include <cstdio>
#include <mutex>

namespace mapview {

std::string unreadable_tile(const std::string& root, const map_info& map, tile_place tile) {
  return "no readable tile " + tile_path(root, map, tile) +
         (tile.level == 0 ? "" : "; larger ones are shown instead");
}

void missing_tiles::note(const viewer::shown& s) {
  if (s.missing.empty() && s.replaced.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const std::vector<tile_place>* const some : {&s.replaced, &s.missing}) {
    for (const tile_place t : *some) {
      if (!known_.insert(t).second) continue;
      ++(t.level == 0 ? count_.missing : count_.replaced);
      name(t);
    }
  }
}

void missing_tiles::name(tile_place tile) {
  if (known_.size() > named_max + 1) return;
  if (known_.size() > named_max) {
    std::fprintf(stderr, "mapview: and more tiles, which are not named any more\n");
  } else {
    std::fprintf(stderr, "mapview: %s\n", unreadable_tile(root_, map_, tile).c_str());
  }
}

unreadable_tiles missing_tiles::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace mapview

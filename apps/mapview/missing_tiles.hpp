// SPDX-License-Identifier: Apache-2.0
// Which tiles of a map could not be read: each is named once, however often it is looked at.
#pragma once
#include <cstddef>
#include <set>
#include <strata/mutex.hpp>
#include <string>
#include <utility>

#include "apps/mapview/viewer.hpp"

namespace mapview {

// A line about it, for whoever made the map.
[[nodiscard]] std::string unreadable_tile(const std::string& root, const map_info& map,
                                          tile_place tile);

class missing_tiles {
 public:
  missing_tiles(std::string root, const map_info& map) : root_(std::move(root)), map_(map) {}

  // Names on stderr those that are new. Any thread of the runtime.
  void note(const viewer::shown& s);
  // Those that were drawn as missing.
  [[nodiscard]] std::size_t count() const;

 private:
  void name(tile_place tile);

  static constexpr std::size_t named_max = 100;  // more lines would help nobody
  const std::string root_;
  const map_info map_;
  mutable strata::mutex mutex_;
  std::set<tile_place> known_;  // guarded by mutex_, like count_
  std::size_t count_ = 0;
};

}  // namespace mapview

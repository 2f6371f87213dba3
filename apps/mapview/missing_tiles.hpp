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

// How many tiles there were that could not be read, and what becomes of that.
struct unreadable_tiles {
  std::size_t missing = 0;   // of the full size: drawn as a hatch
  std::size_t replaced = 0;  // of smaller copies: drawn from larger ones
};
[[nodiscard]] constexpr bool is_whole(const unreadable_tiles& t) noexcept {
  return t.missing == 0 && t.replaced == 0;
}
// Without any that is missing nothing is wrong with a picture, but its map is damaged, and slower.
inline constexpr int exit_replaced = 3;
[[nodiscard]] constexpr int exit_code_of(const unreadable_tiles& t) noexcept {
  return t.missing != 0 ? 1 : t.replaced != 0 ? exit_replaced : 0;
}
[[nodiscard]] constexpr const char* why_not_whole(const unreadable_tiles& t) noexcept {
  return t.missing != 0
             ? "tiles are missing, and drawn as a hatch; make the map again with mapview make "
               "--replace"
             : "nothing is missing, but smaller copies could not be read; make the map again with "
               "mapview make --replace";
}

class missing_tiles {
 public:
  missing_tiles(std::string root, const map_info& map) : root_(std::move(root)), map_(map) {}

  // Names on stderr those that are new. Any thread of the runtime.
  void note(const viewer::shown& s);
  [[nodiscard]] unreadable_tiles count() const;

 private:
  void name(tile_place tile);

  static constexpr std::size_t named_max = 100;  // more lines would help nobody
  const std::string root_;
  const map_info map_;
  mutable strata::mutex mutex_;
  std::set<tile_place> known_;  // guarded by mutex_, like count_
  unreadable_tiles count_;
};

}  // namespace mapview

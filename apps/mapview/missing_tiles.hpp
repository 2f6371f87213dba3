// SPDX-License-Identifier: Apache-2.0
// Which tiles of a map could not be read: each is named once, however often it is looked at.
#pragma once
#include <cstddef>
#include <set>
#include <strata/mutex.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/mapview/fragment.hpp"

namespace mapview {

class missing_tiles {
 public:
  missing_tiles(std::string root, const map_info& map) : root_(std::move(root)), map_(map) {}

  // Names on stderr those that are new. Any thread of the runtime.
  void note(const std::vector<tile_place>& missing);
  [[nodiscard]] std::size_t count() const;

 private:
  static constexpr std::size_t named_max = 100;  // more lines would help nobody
  const std::string root_;
  const map_info map_;
  mutable strata::mutex mutex_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_;  // guarded by mutex_
};

}  // namespace mapview

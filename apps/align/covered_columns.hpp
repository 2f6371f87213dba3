// SPDX-License-Identifier: Apache-2.0
// The columns of the reference that hits cover.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace align {

/// Of columns or of strips, half open.
struct interval {
  std::ptrdiff_t begin, end;
};

/// Those that are covered, and the stretches between.
class covered_columns {
 public:
  explicit covered_columns(std::ptrdiff_t columns) : columns_(columns) {}

  void cover(interval what) {
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), what,
                                   [](auto& a, auto& b) { return a.begin < b.begin; }),
                  what);
    ++version_;
  }
  [[nodiscard]] int version() const { return version_; }
  [[nodiscard]] bool touches(interval what) const {
    return std::any_of(taken_.begin(), taken_.end(),
                       [&](auto& t) { return t.begin < what.end && what.begin < t.end; });
  }
  // The free stretches that have a column in `what`, whole.
  [[nodiscard]] std::vector<interval> free_stretches(interval what) const {
    std::vector<interval> out;
    std::ptrdiff_t begin = 0;
    const auto add = [&](std::ptrdiff_t end) {
      if (begin < end && begin < what.end && what.begin < end) out.push_back({begin, end});
    };
    for (const interval& t : taken_) {
      add(t.begin);
      begin = t.end;
    }
    add(columns_);
    return out;
  }

 private:
  std::ptrdiff_t columns_;
  std::vector<interval> taken_;  // sorted, disjoint
  int version_ = 0;
};

}  // namespace align

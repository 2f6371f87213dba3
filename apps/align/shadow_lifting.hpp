// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/align/covered_columns.hpp"
#include "apps/align/hit_ground.hpp"
#include "apps/align/part.hpp"

namespace align {

/// A high score fades so slowly to the right of its end and below it that it hides, in hundreds of
/// tiles, what else is there. When the hit's columns are taken, two sweeps beside them give all
/// those tiles their new bounds at once.
class shadow_lifting {
 public:
  explicit shadow_lifting(hit_ground& ground);

  /// Whether a hit of this score hides so much.
  [[nodiscard]] bool is_worth_it(std::int32_t score) const;

  /// Lowers the bounds of all fields beside a hit that covers `taken`. Runs on all nodes.
  void lift(interval taken);

  /// What each node did, if node 0 was not alone.
  [[nodiscard]] std::vector<node_work>& work() { return work_; }

 private:
  // A sweep of free columns through some strips.
  struct lit {
    window seen;
    interval columns{0, 0};
    interval strips{0, 0};

    [[nodiscard]] bool has(int r, interval part) const {
      return strips.begin <= r && r < strips.end && columns.begin <= part.begin &&
             part.end <= columns.end;
    }
  };

  void lift(std::size_t f, interval taken);
  [[nodiscard]] lit make_light(std::size_t f, interval columns, std::ptrdiff_t free_begin,
                               interval strips) const;
  void run_both(std::size_t f, const window& one, const window& other);
  void lower_bounds(std::size_t f, interval columns, const lit& on_left, const lit& on_right);

  static constexpr std::int32_t long_shadow = 256;  // columns
  static constexpr std::ptrdiff_t context_columns = 4096;
  static constexpr int context_strips = 8;

  hit_ground& ground_;
  // Tiles up to here are looked at one by one. 0: chance goes anywhere, and no shadow ever ends.
  std::int32_t dark_score_ = 0;
  std::vector<node_work> work_;
};

}  // namespace align

// SPDX-License-Identifier: Apache-2.0
// One pass over the whole matrix, tile by tile, in linear memory.
//
// Tiles are (strip, block): a strip of rows and a block of steps. Blocks are numbered in slanted
// coordinates: strip r is at its column j in step t = j + r * shear, so the border that tile (r, c)
// writes is exactly the border that tile (r+1, c) reads, element for element. Tile (r, c) may run
// when (r-1, c) and (r, c-1) have, where those exist; any two others may run at the same time.
//
// Memory: one state per strip (O(m)), two borders per block (O(n)), and a maximum per tile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/align/band.hpp"
#include "apps/align/best_cell.hpp"
#include "apps/align/kernel.hpp"
#include "apps/align/packed.hpp"
#include "apps/align/scoring.hpp"

namespace align {

struct sweep_options {
  scoring score;
  bool local = true;  ///< clamp at zero (Smith-Waterman); else both sequences are anchored at their
                      ///< beginnings
  /// Anchored only: what the first residue of a gap costs that begins at the top of the left border
  /// (Myers and Miller's tb).
  int top_left_open = -1;  ///< -1: score.open
  /// Anchored only: where a cell first has this score is remembered (best()); stops nothing early.
  std::int32_t target = std::numeric_limits<std::int32_t>::max();
  bool keep_last_row = false;  ///< anchored only
  /// Anchored only: where an alignment that matters can pass; diagonal 0 among it. Tiles that do
  /// not touch it are left out. Scores are exact where an alignment within the band reaches them,
  /// and never too high elsewhere.
  band within;
  /// Local only: scores that alignments may bring in from above, and from the left into each strip
  /// (empty: none). Upper bounds in, upper bounds out.
  std::int32_t top_border = 0;
  std::vector<std::int32_t> left_borders;
  const kernel_set* kernels = nullptr;
  unsigned workers = 1;      ///< how much parallelism the tiles should offer
  int block_steps = 0;       ///< 0: chosen
  std::ptrdiff_t phase = 0;  ///< shifts the block boundaries, so that a window can share the tiles
                             ///< of the whole (see hits.cpp)
  int only_strip = -1, only_block = -1;      ///< best() looks at this tile alone; -1: at all
  int height_index = -1;                     ///< -1: chosen
  lane_width narrowest = lane_width::bits8;  ///< tests force the wider kernels
};

class sweep {
 public:
  sweep(letters_view query, letters_view ref, const sweep_options& options);
  ~sweep();
  sweep(const sweep&) = delete;
  sweep& operator=(const sweep&) = delete;

  [[nodiscard]] const sweep_options& options() const { return options_; }
  [[nodiscard]] std::ptrdiff_t rows() const { return rows_; }
  [[nodiscard]] std::ptrdiff_t columns() const { return columns_; }
  [[nodiscard]] int strips() const { return static_cast<int>(query_.strips().size()); }
  [[nodiscard]] int blocks() const { return blocks_; }
  /// The blocks of a strip: [first_block(r), end_block(r)). Both grow with r, and the first of a
  /// strip is one of the strip above.
  [[nodiscard]] int first_block(int r) const {
    // Its first cell in the band follows from the one above and to the left.
    const std::ptrdiff_t column = first_row(r) + options_.within.lowest - 1;
    return static_cast<int>((origin(r) + column_in_band(column)) / block_steps_);
  }
  [[nodiscard]] int end_block(int r) const {
    const std::ptrdiff_t below = first_row(r) + strip_at(r).rows;
    return static_cast<int>(
               (origin(r) + column_in_band(below + options_.within.highest) + shear()) /
               block_steps_) +
           1;
  }
  [[nodiscard]] bool exists(int r, int c) const {
    return r >= 0 && r < strips() && c >= first_block(r) && c < end_block(r);
  }
  [[nodiscard]] std::int64_t tiles() const;

  /// Computes one tile. Its predecessors must be complete and visible to the caller. Runs to its
  /// end, never suspends.
  void run_tile(int r, int c);

  /// Scores as they travel to another sweep of the same matrix: their format is known to sweeps
  /// only.
  struct scores_view {
    std::span<const std::byte> data;
    bool bytes = false;
  };
  /// What tile (r, c) has left for the tile below it; valid until a tile further down in
  /// block c runs.
  [[nodiscard]] scores_view border_below(int r, int c) const;
  /// Gives tile (r, c) its border from above. No tile of block c may run meanwhile.
  void set_border_above(int r, int c, scores_view from);
  /// What the last tile of strip r that has run leaves for the next one; valid until that runs.
  [[nodiscard]] scores_view state_of(int r) const;
  /// Gives the next tile of strip r what the one on its left has left. No tile of the strip may run
  /// meanwhile.
  void set_state(int r, scores_view from);
  /// Of both.
  [[nodiscard]] std::size_t scores_bytes_max() const;
  /// Cells of some blocks of a strip: where its first row passes them.
  [[nodiscard]] std::int64_t cells(int r, int first_block, int end_block) const {
    const auto column = [&](int c) {
      return std::clamp<std::ptrdiff_t>(std::ptrdiff_t{c} * block_steps_ - origin(r), 0, columns_);
    };
    return static_cast<std::int64_t>(strip_at(r).rows) * (column(end_block) - column(first_block));
  }
  /// The maxima of all tiles, blocks() for each strip, and the best cell: for whoever brings the
  /// results of several sweeps together.
  [[nodiscard]] std::vector<std::int32_t>& maxima() { return maxima_; }
  void merge_best(std::int32_t score, cell first, std::int64_t count) {
    best_.add(score, first, count);
  }

  // Results, once all tiles have run.
  [[nodiscard]] const best_cell& best() const { return best_; }
  /// Local only: upper bound (normally: the maximum) of the scores in a tile.
  [[nodiscard]] std::int32_t tile_maximum(int r, int c) const {
    return maxima_[static_cast<std::size_t>(r) * static_cast<std::size_t>(blocks_) +
                   static_cast<std::size_t>(c)];
  }
  [[nodiscard]] int block_steps() const { return block_steps_; }
  [[nodiscard]] int height_index() const { return height_index_; }
  [[nodiscard]] std::ptrdiff_t first_row(int r) const { return strip_at(r).first_row; }
  /// Steps that strip r lags behind strip 0.
  [[nodiscard]] std::ptrdiff_t lag(int r) const { return shear() * r; }
  /// Frees what only run_tile() needs; the results stay.
  void release();
  /// Rows and columns that contain all cells of a tile, half open.
  struct rectangle {
    std::ptrdiff_t row_begin, row_end, column_begin, column_end;
  };
  [[nodiscard]] rectangle tile_cells(int r, int c) const;
  struct tile_number {
    int strip, block;
  };
  [[nodiscard]] tile_number tile_of(cell where) const;
  /// With keep_last_row: H of the last row, and the vertical gap leaving it, per column.
  [[nodiscard]] const std::vector<std::int32_t>& last_row() const { return last_h_; }
  [[nodiscard]] const std::vector<std::int32_t>& last_row_gap() const { return last_f_; }

  /// How many tiles were computed in 8, 16, 32 bits, and how many twice.
  struct effort {
    std::atomic<std::int64_t> by_width[3]{};
    std::atomic<std::int64_t> repeated{0};
  };
  [[nodiscard]] const effort& work() const { return effort_; }

 private:
  struct state;
  struct border;

  [[nodiscard]] const packed_query::strip& strip_at(int r) const {
    return query_.strips()[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] std::ptrdiff_t column_in_band(std::ptrdiff_t column) const {
    return std::clamp<std::ptrdiff_t>(column, 0, columns_ - 1);
  }
  [[nodiscard]] bool has_tile_above(int r, int c) const { return r > 0 && c < end_block(r - 1); }
  [[nodiscard]] std::int32_t left_border(int r) const {
    return options_.left_borders.empty() ? 0 : options_.left_borders[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] std::ptrdiff_t shear() const {
    return lane_lag * static_cast<std::ptrdiff_t>(lanes_ - 1);
  }
  [[nodiscard]] std::ptrdiff_t origin(int r) const { return shear() * r + options_.phase; }
  [[nodiscard]] bool counts_for_best(int r, int c, std::int32_t score) const {
    return (options_.only_strip < 0 || (r == options_.only_strip && c == options_.only_block)) &&
           best_.interesting(score);
  }
  [[nodiscard]] std::ptrdiff_t steps_per_strip() const { return columns_ + shear(); }
  [[nodiscard]] border& border_at(int c, int parity) const;
  [[nodiscard]] std::size_t border_bytes(bool bytes) const;
  [[nodiscard]] std::size_t state_values(int r) const;
  [[nodiscard]] tile_args arguments(int r, int c) const;
  void start_state(int r, std::int32_t* values) const;
  void start_state_in_band(int r, std::int32_t above, std::int32_t* values) const;
  bool run_bytes(int r, int c, tile_args& a);
  void run_wide(int r, int c, tile_args& a);
  void read_scores(int r, int c, const tile_args& a, std::int32_t* start, std::int32_t* in_h,
                   std::int32_t* in_f);
  void pass_on(int r, int c, const tile_args& a, const std::int32_t* next,
               const std::int32_t* out_h, const std::int32_t* out_f);
  /// Linear kernels neither read nor write the gap border.
  [[nodiscard]] bool reads_gaps() const { return !options_.local || !options_.score.linear(); }
  /// Where its first column lies in the borders of block c.
  [[nodiscard]] std::ptrdiff_t offset_in_border(int r, int c, const tile_args& a) const {
    return a.first_column + origin(r) - static_cast<std::ptrdiff_t>(c) * block_steps_;
  }
  void note_maximum(int r, int c, std::int32_t score) {
    if (options_.local)
      maxima_[static_cast<std::size_t>(r) * static_cast<std::size_t>(blocks_) +
              static_cast<std::size_t>(c)] = score;
  }
  void locate(int r, int c, tile_function f, tile_args a, std::int32_t score);

  sweep_options options_;
  int lanes_;
  std::ptrdiff_t rows_, columns_;
  int height_index_;
  packed_query query_;
  packed_reference ref_;
  int block_steps_ = 0;
  int blocks_ = 0;
  std::ptrdiff_t border_stride_ = 0;
  std::unique_ptr<std::byte[]> border_bytes_;
  std::unique_ptr<border[]> borders_;
  std::unique_ptr<state[]> states_;
  std::vector<std::int32_t> maxima_;  // of local sweeps
  std::vector<std::int32_t> last_h_, last_f_;
  best_cell best_;
  effort effort_;
};

}  // namespace align

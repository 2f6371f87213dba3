// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <strata/fiber.hpp>

#include "apps/nqueens/board.hpp"

namespace nqueens {

// A threaded function per safe placement: its token carries the board by value and may travel. The
// frame learns how many placements follow from it, sets its sync slot to that number, and sums when
// all have answered.
class placement : public strata::threaded {
 public:
  placement(unsigned n, unsigned row, unsigned depth_max, const board& b,
            strata::global_ptr<std::uint64_t> result, strata::slot_ptr done)
      : n_(n), row_(row), depth_max_(depth_max), board_(b), result_(result), done_(done) {}

  void start() {
    if (row_ == n_) return answer(1);
    if (row_ >= depth_max_) return answer(serial(n_, row_, board_));
    std::array<unsigned char, n_max> safe_columns;
    for (unsigned column = 0; column < n_; ++column) {
      if (safe(board_, row_, column)) {
        safe_columns[followers_++] = static_cast<unsigned char>(column);
      }
    }
    if (followers_ == 0) return answer(0);
    ALL_ANSWERED.init(followers_);
    const strata::slot_ptr answered = strata::to_sptr(ALL_ANSWERED);
    // The frame may be gone as soon as the last token is sent.
    const unsigned followers = followers_;
    for (unsigned i = 0; i < followers; ++i) {
      strata::token<placement>(n_, row_ + 1, depth_max_, with_queen(board_, row_, safe_columns[i]),
                               strata::to_global(&found_[i]), answered);
    }
  }

 private:
  void sum() {
    std::uint64_t solutions = 0;
    for (unsigned i = 0; i < followers_; ++i) solutions += found_[i];
    answer(solutions);
  }

  void answer(std::uint64_t solutions) {
    strata::put_sync(solutions, result_, done_);
    terminate();
  }

  unsigned n_;
  unsigned row_;
  unsigned depth_max_;
  board board_;
  strata::global_ptr<std::uint64_t> result_;
  strata::slot_ptr done_;
  unsigned followers_ = 0;
  std::array<std::uint64_t, n_max> found_;  // only the first followers_ are ever set and read
  strata::fiber<&placement::sum> ALL_ANSWERED{this, 1};
};

// Rows from depth_max on are searched serially. Call inside a runtime.
inline std::uint64_t fibers(unsigned n, unsigned depth_max) {
  std::uint64_t solutions = 0;
  strata::completion done{1};
  strata::token<placement>(n, 0U, depth_max, board{}, strata::to_global(&solutions), done.sptr());
  done.wait();
  return solutions;
}

}  // namespace nqueens

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// In how many ways n queens stand on an n by n board without attacking each other. One node of the
// search is one safe placement: a board copied, with a queen more. The copy is the point: a task
// may run at any time on any worker, so it owns its board (as in the Cilk and BOTS versions). The
// serial program copies too, and so they compare.
namespace nqueens {

// The largest board whose count is known; it is 2.3e17. That of 28 has not been computed by
// anybody.
inline constexpr unsigned n_max = 27;

struct board {
  std::array<signed char, 32>
      column;  // column[r]: where the queen of row r stands, for the rows placed so far
};

// Whether a queen in this row and column is attacked by none of the rows above.
inline bool safe(const board& b, unsigned row, unsigned column) {
  const int here = static_cast<int>(column);
  for (unsigned above = 0; above < row; ++above) {
    const int other = b.column[above];
    const int distance = static_cast<int>(row - above);
    if (other == here || other == here - distance || other == here + distance) return false;
  }
  return true;
}

inline board with_queen(const board& b, unsigned row, unsigned column) {
  board next = b;
  next.column[row] = static_cast<signed char>(column);
  return next;
}

// Solutions that extend the first `row` rows of b.
inline std::uint64_t serial(unsigned n, unsigned row, const board& b) {
  if (row == n) return 1;
  std::uint64_t solutions = 0;
  for (unsigned column = 0; column < n; ++column) {
    if (safe(b, row, column)) solutions += serial(n, row + 1, with_queen(b, row, column));
  }
  return solutions;
}
inline std::uint64_t serial(unsigned n) { return serial(n, 0, board{}); }

// https://oeis.org/A000170
constexpr std::uint64_t known_solutions(unsigned n) {
  constexpr std::array<std::uint64_t, n_max + 1> table = {1,
                                                          1,
                                                          0,
                                                          0,
                                                          2,
                                                          10,
                                                          4,
                                                          40,
                                                          92,
                                                          352,
                                                          724,
                                                          2680,
                                                          14200,
                                                          73712,
                                                          365596,
                                                          2279184,
                                                          14772512,
                                                          95815104,
                                                          666090624,
                                                          4968057848,
                                                          39029188884,
                                                          314666222712,
                                                          2691008701644,
                                                          24233937684440,
                                                          227514171973736,
                                                          2207893435808352,
                                                          22317699616364044,
                                                          234907967154122528};
  return table[n];
}

}  // namespace nqueens

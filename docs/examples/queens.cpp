#include <array>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <strata/fork_join.hpp>
#include <strata/runtime.hpp>
#include <strata/task_scope.hpp>
constexpr int size = 14;

struct board {
  int rows = 0;  // that have a queen, and where it stands
  std::array<int, size> column{};
  bool fits(int c) const {
    for (int r = 0; r < rows; ++r)
      if (column[r] == c || std::abs(column[r] - c) == rows - r) return false;
    return true;
  }
};

// Puts queens into all rows below, in every way, until somebody has found one.
void place(board b, std::stop_source& found, board& solution) {
  if (found.stop_requested()) return;
  if (b.rows == size) {
    if (found.request_stop()) solution = b;  // true for the first one alone
    return;
  }
  strata::task_scope scope(found.get_token());  // children that have not begun never do
  for (int c = 0; c < size; ++c) {
    if (!b.fits(c)) continue;
    board next = b;
    next.column[next.rows++] = c;
    scope.spawn([next, &found, &solution] { place(next, found, solution); });
  }
  scope.sync();
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  board solution;
  runtime.run([&] {
    std::stop_source found;
    place(board(), found, solution);
  });
  std::printf("%d queens, none of which attacks another\n", solution.rows);
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/align/band.hpp"
#include "apps/align/traceback.hpp"

namespace align {

cell find_begin(letters_view query, letters_view ref, cell end, std::int32_t score,
                const scoring& s, const driver& d) {
  // Backwards from the end, anchored there: a cell that reaches the score is a beginning. The value
  // of a cell depends only on cells before it, so a window that contains such a cell is as good as
  // the whole; windows grow until one does.
  const letters_view back_query = query.sub(0, end.row + 1).backwards();
  const letters_view back_ref = ref.sub(0, end.column + 1).backwards();
  std::ptrdiff_t rows = std::min<std::ptrdiff_t>(
      std::max<std::ptrdiff_t>(256, score / s.match * 5 / 4), back_query.size());
  for (;;) {
    // What so many rows can score beyond `score` is all that can be spent on gaps.
    sweep_options o;
    o.score = s;
    o.local = false;
    o.target = score;
    o.within = band_of_beginnings(rows, score, s);
    const std::ptrdiff_t columns = std::min(rows + o.within.highest + 1, back_ref.size());
    sweep window(back_query.sub(0, rows), back_ref.sub(0, columns), d.prepare(o));
    d.run(window);
    if (window.best().count() > 0) {
      const cell found = window.best().first();
      return {end.row - found.row, end.column - found.column};
    }
    if (rows == back_query.size()) return {};
    rows = std::min(rows + rows / 2, back_query.size());
  }
}

}  // namespace align

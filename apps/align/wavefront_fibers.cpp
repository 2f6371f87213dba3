// SPDX-License-Identifier: Apache-2.0
// The wavefront as EARTH fibers. Each strip is an activation with one fiber, TILE, enabled by three
// signals: the tile to the left is complete, the border from above has arrived, and the strip below
// has taken the previous border (so that no signal of a later tile can be counted for this one). A
// tile itself is a token: idle workers take it.
#include <memory>
#include <strata/fiber.hpp>

#include "apps/align/driver.hpp"

namespace align {
namespace {

struct wavefront {
  sweep& tiles;
  apps::progress* progress;
  std::unique_ptr<strata::slot_ptr[]> enabled;  // of each strip: its TILE
  strata::slot_ptr complete;                    // one signal per strip

  [[nodiscard]] strata::slot_ptr strip(int r) const { return enabled[static_cast<std::size_t>(r)]; }

  // Before tile (r, c), strip r gets a signal from itself, from above and from below; it sends
  // those itself that nobody else will. The last of them may start the last tile of all, whose end
  // frees this object: everything must have been looked at before the first is sent.
  void signal_next(int r, int c) const {
    const strata::slot_ptr next = strip(r);
    int signals = 1;
    if (!tiles.exists(r - 1, c)) ++signals;
    if (!tiles.exists(r + 1, c - 1) || !tiles.exists(r, c - 1)) ++signals;
    for (; signals > 0; --signals) sync(next);
  }
};

struct tile : strata::threaded {
  const wavefront* front;
  int r, c;

  void start() {
    front->tiles.run_tile(r, c);
    if (front->progress) front->progress->add(1);
    if (front->tiles.exists(r + 1, c)) sync(front->strip(r + 1));
    if (front->tiles.exists(r, c + 1))
      front->signal_next(r, c + 1);
    else
      sync(front->complete);
    terminate();
  }
};

struct strip : strata::threaded {
  wavefront* front;
  int r;
  strata::slot_ptr ready;
  int next;

  void start() {
    next = front->tiles.first_block(r);
    front->enabled[static_cast<std::size_t>(r)] = to_sptr(TILE);
    sync(ready);
  }
  void enable() {
    const int c = next++;
    // The border from above is taken; the strip above may go on, if it still has where to go.
    if (front->tiles.exists(r - 1, c) && front->tiles.exists(r - 1, c + 1))
      sync(front->strip(r - 1));
    const wavefront* const shared = front;
    const int row = r;
    if (!front->tiles.exists(r, c + 1)) terminate();  // nobody signals this strip again
    strata::token<tile>(shared, row, c);
  }
  strata::fiber<&strip::enable> TILE{this, 3, 3};
};

}  // namespace

void run_fibers(sweep& s, apps::progress* progress) {
  strata::completion started(static_cast<std::uint32_t>(s.strips()));
  strata::completion complete(static_cast<std::uint32_t>(s.strips()));
  wavefront front{s, progress,
                  std::make_unique<strata::slot_ptr[]>(static_cast<std::size_t>(s.strips())),
                  complete.sptr()};
  for (int r = 0; r < s.strips(); ++r) strata::token<strip>(&front, r, started.sptr());
  started.wait();
  for (int r = 0; r < s.strips(); ++r) front.signal_next(r, s.first_block(r));
  complete.wait();
}

}  // namespace align

// SPDX-License-Identifier: Apache-2.0
// The wavefront as fork-join: whoever completes a tile starts those that this made ready; two ready
// tiles are a fork. There is no barrier and no queue of tiles. Memory: two counters per strip.
#include <atomic>
#include <memory>

#include "apps/align/driver.hpp"

namespace align {
namespace {

class wavefront {
 public:
  wavefront(sweep& s, apps::progress* progress)
      : sweep_(s),
        progress_(progress),
        strips_(std::make_unique<strip[]>(static_cast<std::size_t>(s.strips()))) {
    for (int r = 0; r < s.strips(); ++r) {
      at(r).done.store(s.first_block(r), std::memory_order_relaxed);
      at(r).claimed.store(s.first_block(r), std::memory_order_relaxed);
    }
  }

  void run() {
    const int c = try_claim(0);
    if (c >= 0) follow(0, c);
  }

 private:
  // Tiles of a strip run in order. Invariant: done <= claimed <= done + 1.
  struct alignas(64) strip {
    std::atomic<int> done;
    std::atomic<int> claimed;
  };
  strip& at(int r) { return strips_[static_cast<std::size_t>(r)]; }

  // Takes the next tile of a strip if it is ready and not taken; returns its block or -1.
  // Both predecessors of a tile publish themselves in `done`, then look here. All four accesses are
  // seq_cst, so the one that is later sees the other: a ready tile is never left behind. The
  // exchange decides if both see it.
  int try_claim(int r) {
    if (r == sweep_.strips()) return -1;
    int c = at(r).done.load();
    if (c == sweep_.end_block(r)) return -1;
    if (r > 0 && c < sweep_.end_block(r - 1) && at(r - 1).done.load() <= c) return -1;
    return at(r).claimed.compare_exchange_strong(c, c + 1) ? c : -1;
  }

  void follow(int r, int c) {
    for (;;) {
      sweep_.run_tile(r, c);
      if (progress_) progress_->add(1);
      at(r).done.store(c + 1);
      const int right = try_claim(r);
      const int below = try_claim(r + 1);
      if (right >= 0 && below >= 0) {
        strata::fork2join([=, this] { follow(r, right); }, [=, this] { follow(r + 1, below); });
        return;
      }
      if (right < 0 && below < 0) return;
      c = right >= 0 ? right : below;
      if (right < 0) ++r;
    }
  }

  sweep& sweep_;
  apps::progress* progress_;
  std::unique_ptr<strip[]> strips_;
};

}  // namespace

void run_fork_join(sweep& s, apps::progress* progress) { wavefront(s, progress).run(); }

}  // namespace align

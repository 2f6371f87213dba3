// SPDX-License-Identifier: Apache-2.0
// Runs the tiles of a sweep: one after the other, as fork-join tasks, or as fibers. All three give
// the same results.
#pragma once

#include <cstdint>
#include <strata/fork_join.hpp>
#include <vector>

#include "apps/align/kernel.hpp"
#include "apps/align/part.hpp"
#include "apps/align/sweep.hpp"
#include "apps/common/program.hpp"
#include "apps/common/progress.hpp"

namespace align {

struct driver {
  apps::style how = apps::style::serial;
  unsigned workers = 1;
  unsigned nodes = 1;  ///< of the job when it began: those that sweeps are shared with
  const kernel_set* kernels = find_kernels();
  apps::progress* progress = nullptr;  ///< told of every tile, if any

  /// Runs all tiles on this node. Inside strata::runtime::run() unless serial; may suspend.
  void run(sweep& s) const;

  /// Whether the style has work for other nodes, and all are still there.
  [[nodiscard]] bool has_other_nodes() const;
  /// Whether run_all() shares sweeps of so many tiles with other nodes.
  [[nodiscard]] bool shares(std::int64_t tiles, std::int64_t fewest) const;
  /// Runs at most two sweeps at once, on all nodes where they have `fewest_to_share` tiles, the
  /// style allows it, and no node has left; returns what each node did then, nothing otherwise.
  /// Like run(), and on node 0.
  std::vector<node_work> run_all(const std::vector<part>& parts,
                                 std::int64_t fewest_to_share) const;

  /// Fills in what a sweep must know about who runs it.
  [[nodiscard]] sweep_options prepare(sweep_options o) const {
    if (!o.kernels) o.kernels = kernels;
    o.workers = workers;
    return o;
  }

  /// Calls f and g, in parallel where the style allows.
  template <class F, class G>
  void both(F&& f, G&& g) const {
    if (how == apps::style::serial) {
      f();
      g();
    } else {
      strata::fork2join(f, g);
    }
  }

  /// Calls f(0), ... f(count - 1) for at most two, in parallel where the style allows.
  template <class F>
  void for_each(std::size_t count, const F& f) const {
    if (count == 2)
      both([&] { f(std::size_t{0}); }, [&] { f(std::size_t{1}); });
    else if (count == 1)
      f(std::size_t{0});
  }

  /// Sweeps with fewer tiles are not worth sharing out. Those beside hits are many and small, and
  /// to agree on one with other nodes takes some round trips, a tile some 25 us.
  static constexpr std::int64_t fewest_tiles_to_share = 8;
  static constexpr std::int64_t fewest_tiles_beside_hits = 64;
};

// One wavefront per style.
void run_serial(sweep& s, apps::progress* progress);
void run_fork_join(sweep& s, apps::progress* progress);
void run_fibers(sweep& s, apps::progress* progress);

}  // namespace align

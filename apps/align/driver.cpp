// SPDX-License-Identifier: Apache-2.0
#include "apps/align/driver.hpp"

namespace align {

void driver::run(sweep& s) const {
  if (how == apps::style::serial || s.tiles() < fewest_tiles_to_share)
    return run_serial(s, progress);
  // The tokens of run_fibers() could end up on other nodes, which have no part in this sweep.
  if (how == apps::style::fork_join || strata::num_nodes() > 1) return run_fork_join(s, progress);
  run_fibers(s, progress);
}

void run_serial(sweep& s, apps::progress* progress) {
  for (int r = 0; r < s.strips(); ++r) {
    for (int c = s.first_block(r); c < s.end_block(r); ++c) {
      s.run_tile(r, c);
      if (progress) progress->add(1);
    }
  }
}

}  // namespace align

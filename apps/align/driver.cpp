// SPDX-License-Identifier: Apache-2.0
#include "apps/align/driver.hpp"

#include <strata/membership.hpp>

#include "apps/align/wavefront_nodes.hpp"

namespace align {

void driver::run(sweep& s) const {
  if (how == apps::style::serial || s.tiles() < fewest_tiles_to_share)
    return run_serial(s, progress);
  // The tokens of run_fibers() could end up on other nodes, which have no part in this sweep.
  if (how == apps::style::fork_join || strata::num_nodes() > 1) return run_fork_join(s, progress);
  run_fibers(s, progress);
}

bool driver::shares(std::int64_t tiles, std::int64_t fewest) const {
  return tiles >= fewest && has_other_nodes();
}

bool driver::has_other_nodes() const {
  if (how != apps::style::fibers || nodes == 1) return false;
  for (unsigned n = 0; n < nodes; ++n) {
    if (!strata::is_member(static_cast<strata::node_id_t>(n))) return false;
  }
  return true;
}

std::vector<node_work> driver::run_all(const std::vector<part>& parts,
                                       std::int64_t fewest_to_share) const {
  std::int64_t tiles = 0;
  for (const part& p : parts) tiles += p.tiles->tiles();
  if (shares(tiles, fewest_to_share)) return run_on_nodes(parts, *this);
  // At once: each wavefront has work while the other one begins or ends.
  for_each(parts.size(), [&](std::size_t i) { run(*parts[i].tiles); });
  return {};
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

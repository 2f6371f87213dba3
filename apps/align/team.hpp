// SPDX-License-Identifier: Apache-2.0
// A node's part in a comparison of several nodes: its tiles, and what it hears and says while they
// run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <strata/global_ptr.hpp>
#include <strata/slot.hpp>
#include <vector>

#include "apps/align/front.hpp"
#include "apps/align/ready_tiles.hpp"
#include "apps/align/sweep.hpp"
#include "apps/align/wavefront_words.hpp"
#include "apps/common/progress.hpp"

namespace align {

// A node's part in a comparison.
struct team {
  std::vector<std::unique_ptr<sweep>> own;  // empty on node 0
  std::vector<std::unique_ptr<front>> fronts;
  neighbours beside;
  ready_tiles ready;
  std::atomic<std::int64_t> tiles_left{0};
  std::atomic<std::int64_t> bytes_sent{0};
  node_work work;
  destination results;
  apps::progress* progress = nullptr;
};

// One comparison at a time in a process: written before and after any tile runs.
extern std::unique_ptr<team> team_here;

// A sweep of which this node has its share.
void add_front(team& t, sweep& s, unsigned nodes, unsigned node, bool from_behind);

// Gives the node its mailbox, whose address goes to `address`, with a signal to `ready`. It lives
// until the farewell comes, which ends the team.
void open_inbox(const strata::global_ptr<mailbox_ptr>& address, const strata::slot_ptr& ready);

// Runs the tile of strip r that is next, if it can run, and all that come of it.
void claim(int part, int r);

// The node has run its last tile.
void send_results(team& t);

}  // namespace align

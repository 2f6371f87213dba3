// SPDX-License-Identifier: Apache-2.0
// Sweeps shared out over the nodes of a job.
//
// The strips of a sweep are dealt to the nodes in groups of neighbours, round and round. A group's
// last strip sends its bottom border, block by block, to the node of the group below; within a
// group everything is as on one node. Wherever a border arrives, the place it goes to is free: the
// tile that wrote it depends on the tile of the receiver's previous group that used this place
// last. So a node that is ahead can never flood another, and a node holds two borders per block,
// however many nodes and groups there are.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/align/driver.hpp"
#include "apps/align/hits.hpp"
#include "apps/align/sequence.hpp"

namespace align {

/// What a node did for the main sweeps.
struct node_work {
  std::int64_t tiles = 0;
  std::int64_t cells = 0;
  std::int64_t bytes_sent = 0;  ///< borders and results
};

/// Every node of a job calls this before it starts its runtime: nodes other than 0 look for the
/// sequences here. They must stay valid.
void lend_sequences(const sequence& query, const sequence& ref, const scoring& score);

/// Runs the sweeps of these fields on all nodes of the job, and brings what they found to node 0.
/// Called on node 0, inside its runtime; returns what each node did. Throws strata::user_error if
/// the nodes do not have the same sequences or instructions.
std::vector<node_work> run_on_nodes(const std::vector<field>& fields,
                                    const std::vector<sweep*>& sweeps, const driver& d);

}  // namespace align

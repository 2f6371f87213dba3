// SPDX-License-Identifier: Apache-2.0
// Sweeps shared out over the nodes of a job.
//
// The tiles of a sweep, strip by strip, are dealt to the nodes in groups, there and back. Whatever
// has its tile below in the next group sends its bottom border to the node of that group, and the
// last tile of a group the state of its strip; within a group everything is as on one node.
// Wherever a border arrives, the place it goes to is free: the tile that wrote it depends on the
// tile of the receiver's previous group that used this place last. So a node that is ahead can
// never flood another, and a node holds two borders per block, however many nodes and groups there
// are.
#pragma once

#include <vector>

#include "apps/align/driver.hpp"
#include "apps/align/part.hpp"
#include "apps/align/sequence.hpp"

namespace align {

/// Runs at most two sweeps of the lent sequences on all nodes of the job, and brings what they
/// found to node 0. Called on node 0, inside its runtime, once at a time; returns what each node
/// did. Throws strata::user_error if the nodes do not have the same sequences or instructions.
std::vector<node_work> run_on_nodes(const std::vector<part>& parts, const driver& d);

}  // namespace align

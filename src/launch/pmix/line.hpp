// SPDX-License-Identifier: Apache-2.0
// The line of a node whose job the site's tools have made (Slurm, Open MPI): PMIx takes our
// launcher's place. Nodes find out about each other in three meetings:
//
//   1. who they are, on which host, which CPUs they may use; node 0 hands out the job's key
//   2. whether the nodes of a host reach the memory that the first of them has made; if one does
//      not, all nodes of that host use sockets
//   3. where they listen, and their build
//
// Nobody watches over them as our launcher would, so they watch each other: nodes of one host hear
// from the kernel when a process ends, nodes of other hosts lose their connection.
#pragma once
#include <memory>

#include "launch/job.hpp"
#include "strata/options.hpp"

namespace strata::launch::pmix {

// Joins the job that PMIx's variables name, for the `time`-th time of this process: all nodes of
// the job do so together. Null when the job has one node. Throws strata::error.
std::unique_ptr<control_line> join(const options& settings, unsigned time);

}  // namespace strata::launch::pmix

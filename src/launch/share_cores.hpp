// SPDX-License-Identifier: Apache-2.0
// The nodes of one host share its cores: each gets its own, near to each other.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "os/topology.hpp"

namespace strata::launch {

struct core_share {
  std::vector<int> cpus;  // empty: not bound
  unsigned workers = 1;
};

struct core_plan {
  std::vector<core_share> nodes;
  std::string warning;  // for the user; empty: none
};

struct core_wishes {
  unsigned nodes = 1;
  unsigned workers = 0;  // for each node; 0: what its share allows
  bool bind = true;
};

// `cores` is how many CPUs may be busy at a time: all that are allowed, or fewer where a quota says
// so. Every CPU goes to at most one node. When there are too few, nobody is bound: the system then
// moves the workers about as it sees fit.
core_plan share_cores(const os::topology& machine, std::span<const int> allowed, unsigned cores,
                      const core_wishes& wanted);
// On this machine, within affinity mask and quota.
core_plan share_cores(const core_wishes& wanted);
// For a node that comes late: its share of what the nodes of this host that are there leave, when
// wanted.nodes will share that. When too little is left it is not bound, and has one worker unless
// more are wanted.
core_share share_rest(const os::topology& machine, std::span<const int> allowed, unsigned cores,
                      std::span<const core_share> present, const core_wishes& wanted);
core_share share_rest(std::span<const core_share> present, const core_wishes& wanted);

// "2 workers on CPUs 0-1"
std::string to_text(const core_share& share);

}  // namespace strata::launch

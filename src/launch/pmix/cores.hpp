// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "launch/share_cores.hpp"

namespace strata::launch::pmix {

// Which cores a node of a job of PMIx takes. `masks` are the CPUs that each node of its host may
// use, `self` is its place among them. Launchers of sites either give each node CPUs of its own,
// which it then has, or the same to several, which then share them as those of `strata run` do.
// Where masks overlap in other ways nobody is bound. `quota_cores` counts for all nodes of the
// host. `warning` is about the nodes that share.
struct own_cores {
  core_share share;
  std::string warning;
};
own_cores choose_cores(const os::topology& machine, const std::vector<std::vector<int>>& masks,
                       std::size_t self, double quota_cores, unsigned workers, bool bind);

}  // namespace strata::launch::pmix

// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/cores.hpp"

#include <algorithm>
#include <utility>

namespace strata::launch::pmix {

namespace {

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

own_cores choose_cores(const os::topology& machine, const std::vector<std::vector<int>>& masks,
                       std::size_t self, double quota_cores, unsigned workers, bool bind) {
  const std::vector<int>& mine = masks.at(self);
  unsigned sharing = 0;
  unsigned place = 0;
  bool crossed = false;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i] == mine) {
      if (i < self) ++place;
      ++sharing;
    } else {
      crossed |= overlap(masks[i], mine);
    }
  }
  const double quota = quota_cores * sharing / static_cast<double>(masks.size());
  core_plan plan = share_cores(machine, mine, os::workers_for(mine.size(), quota),
                               {.nodes = sharing, .workers = workers, .bind = bind && !crossed});
  return {std::move(plan.nodes[place]), std::move(plan.warning)};
}

}  // namespace strata::launch::pmix

// SPDX-License-Identifier: Apache-2.0
#include "strata/route.hpp"

#include "sched/scheduler.hpp"
#include "strata/error.hpp"

namespace strata {

route route_to(node_id_t node) {
  const detail::worker& here = detail::this_worker();
  if (here.owner == nullptr) throw misuse_error("route_to() outside a runtime");
  if (node >= here.nodes)
    throw misuse_error("route_to(" + std::to_string(node) + "): this job has " +
                       std::to_string(here.nodes) + " nodes");
  if (const detail::scheduler::visit n(*here.owner); n) return n->way_to(node);
  return {.next = node};
}

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/course/node_table.hpp"

#include <algorithm>

#include "launch/messages.hpp"
#include "os/topology.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

node_table::node_table(node_id nodes) : all_(nodes, node_state{.line_limit_ns = no_deadline}) {}

node_id node_table::add() {
  all_.push_back({.is = part::coming, .line_limit_ns = no_deadline});
  return static_cast<node_id>(all_.size() - 1);
}

std::vector<node_id> node_table::gone() const {
  std::vector<node_id> result;
  for (node_id node = 0; node < size(); ++node) {
    if (all_[node].is == part::left || all_[node].is == part::refused) result.push_back(node);
  }
  return result;
}

std::string node_table::measurements() const {
  std::vector<std::vector<measured_link>> all;
  for (const node_state& n : all_) {
    if (n.measured) all.push_back(*n.measured);
  }
  return all.empty() ? std::string() : pack_measurements(all);
}

std::string node_table::closed_frame() const {
  return pack_closed(frame_kind::all_closed, {closed.begin(), closed.end()});
}

std::string node_table::name(node_id node) const {
  return "node " + std::to_string(node) + all_.at(node).on_host;
}

std::string node_table::names(const std::vector<node_id>& nodes) const {
  if (nodes.size() == 1) return name(nodes[0]);
  return "nodes " + os::to_ranges(std::vector<int>(nodes.begin(), nodes.end()));
}

std::string node_table::other_build(node_id a, node_id b, const std::string& program) const {
  const node_id low = std::min(a, b);
  const node_id high = std::max(a, b);
  if (at(low).build_id == at(high).build_id) return {};
  return name(high) + " runs another build of " + program + " than " + name(low) + " (build ids " +
         at(high).build_id + " and " + at(low).build_id + "); install the same file on every host";
}

}  // namespace strata::launcher

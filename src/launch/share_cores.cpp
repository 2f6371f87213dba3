// SPDX-License-Identifier: Apache-2.0
#include "launch/share_cores.hpp"

#include <algorithm>
#include <cstddef>

#include "os/quota.hpp"

namespace strata::launch {

namespace {

// The nearest CPUs, in an order in which the threads of one core are neighbours: a cut anywhere
// splits at most one core.
std::vector<int> nearest_by_core(const os::topology& machine, std::span<const int> allowed,
                                 unsigned count) {
  const std::vector<int> chosen = machine.place(allowed, count);
  std::vector<int> ordered;
  std::vector<bool> taken(chosen.size(), false);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (taken[i]) continue;
    ordered.push_back(chosen[i]);
    for (std::size_t k = i + 1; k < chosen.size(); ++k) {
      if (taken[k] || machine.between(chosen[i], chosen[k]) != os::distance::core) continue;
      taken[k] = true;
      ordered.push_back(chosen[k]);
    }
  }
  return ordered;
}

std::string counted(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

core_plan share_cores(const os::topology& machine, std::span<const int> allowed, unsigned cores,
                      const core_wishes& wanted) {
  core_plan plan;
  plan.nodes.resize(wanted.nodes);
  const std::size_t workers = wanted.workers != 0 ? std::size_t{wanted.nodes} * wanted.workers
                                                  : std::max<std::size_t>(wanted.nodes, cores);
  if (workers > std::max<std::size_t>(cores, 1)) {
    plan.warning = counted(workers, "worker") + " of " + counted(wanted.nodes, "node") + " share " +
                   counted(cores, "core") + ": expect no speed-up from the surplus";
  }
  for (unsigned node = 0; node < wanted.nodes; ++node) {
    plan.nodes[node].workers =
        wanted.workers != 0
            ? wanted.workers
            : static_cast<unsigned>(workers / wanted.nodes + (node < workers % wanted.nodes));
  }
  if (!wanted.bind || workers > cores) return plan;
  const std::vector<int> cpus = nearest_by_core(machine, allowed, static_cast<unsigned>(workers));
  auto next = cpus.begin();
  for (core_share& share : plan.nodes) {
    share.cpus.assign(next, next + share.workers);
    std::sort(share.cpus.begin(), share.cpus.end());
    next += share.workers;
  }
  return plan;
}

core_plan share_cores(const core_wishes& wanted) {
  const std::vector<int> allowed = os::allowed_cpus();
  const unsigned cores = os::workers_for(allowed.size(), os::read_cpu_quota().cores);
  return share_cores(os::topology::machine(), allowed, cores, wanted);
}

std::string to_text(const core_share& share) {
  const std::string workers = counted(share.workers, "worker");
  if (share.cpus.empty()) return workers + ", not bound";
  return workers + (share.cpus.size() == 1 ? " on CPU " : " on CPUs ") + os::to_ranges(share.cpus);
}

}  // namespace strata::launch

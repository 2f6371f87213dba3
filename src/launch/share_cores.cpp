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

// That may be busy at a time.
unsigned cores_within_quota(std::size_t allowed) {
  return os::workers_for(allowed, os::read_cpu_quota().cores);
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

core_share share_rest(const os::topology& machine, std::span<const int> allowed, unsigned cores,
                      std::span<const core_share> present, const core_wishes& wanted) {
  std::vector<int> rest(allowed.begin(), allowed.end());
  // Where nobody is bound all use all cores; elsewhere those that are not bound make do.
  unsigned bound = 0, unbound = 0;
  for (const core_share& one : present) {
    (one.cpus.empty() ? unbound : bound) += one.workers;
    std::erase_if(rest, [&](int cpu) {
      return std::find(one.cpus.begin(), one.cpus.end(), cpu) != one.cpus.end();
    });
  }
  const unsigned busy = std::min(cores, bound != 0 ? bound : unbound);
  const unsigned left = std::min(cores - busy, static_cast<unsigned>(rest.size()));
  if (std::max(wanted.workers, 1U) > left) return {{}, std::max(wanted.workers, 1U)};
  core_wishes now = wanted;
  now.nodes = wanted.workers != 0 ? 1 : std::min(wanted.nodes, left);
  return share_cores(machine, rest, left, now).nodes[0];
}

core_plan share_cores(const core_wishes& wanted) {
  const std::vector<int> allowed = os::allowed_cpus();
  return share_cores(os::topology::machine(), allowed, cores_within_quota(allowed.size()), wanted);
}

core_share share_rest(std::span<const core_share> present, const core_wishes& wanted) {
  const std::vector<int> allowed = os::allowed_cpus();
  return share_rest(os::topology::machine(), allowed, cores_within_quota(allowed.size()), present,
                    wanted);
}

std::string to_text(const core_share& share) {
  const std::string workers = counted(share.workers, "worker");
  if (share.cpus.empty()) return workers + ", not bound";
  return workers + (share.cpus.size() == 1 ? " on CPU " : " on CPUs ") + os::to_ranges(share.cpus);
}

}  // namespace strata::launch

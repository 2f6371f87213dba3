// SPDX-License-Identifier: Apache-2.0
// How much processor time the cgroup grants. A container that may use two cores of a machine with
// 64 sees 64 CPUs; a runtime that believes them starts 64 workers, which are then stopped for most
// of every period.
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace strata::os {

struct cpu_quota {
  double cores = std::numeric_limits<double>::infinity();  ///< infinity: no limit
  std::filesystem::path source;  ///< the file that says so; empty without a limit
};

/// The smallest CPU quota on the way from the process's own cgroup up to the root, for cgroup v2
/// (cpu.max), v1 (cpu.cfs_quota_us) and both at once. What cannot be read or understood limits
/// nothing. Arguments are for tests: the text of /proc/self/cgroup and the folder where cgroups are
/// mounted.
cpu_quota read_cpu_quota(const std::string& proc_self_cgroup, const std::filesystem::path& mount);

/// The same for this process.
cpu_quota read_cpu_quota();

}  // namespace strata::os

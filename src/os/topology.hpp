// SPDX-License-Identifier: Apache-2.0
// Where the CPUs are, which of them are ours, and how far they lie from each other. hwloc is asked
// once per process and never seen outside topology.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace strata::os {

/// The CPUs (operating system numbers, ascending) that the calling thread may run on. Ask before
/// binding the thread. Throws strata::error when the kernel refuses to say.
std::vector<int> allowed_cpus();

/// Restricts the calling thread to `cpus`; false when none of them is allowed. To unbind, pass what
/// allowed_cpus() said before.
[[nodiscard]] bool bind_current_thread(std::span<const int> cpus) noexcept;
[[nodiscard]] bool bind_current_thread(int cpu) noexcept;

/// The CPU that the calling thread runs on now, which may be another at the next moment; -1 when
/// the system does not say. A few ns.
int current_cpu() noexcept;

/// The kernel's number of the calling OS thread; asked once for each.
int thread_number() noexcept;

/// One worker per allowed CPU, but never more than the whole cores of the quota, and at least one:
/// a quota of half a core or of 1.9 cores is one worker, because a worker that is stopped by the
/// kernel holds up those who wait for it.
unsigned workers_for(std::size_t allowed, double quota_cores) noexcept;

/// How many workers to start here, and the sentence that explains it ("2 workers: CPUs 0-1, no CPU
/// quota").
struct worker_choice {
  unsigned workers;
  std::string reason;
};
worker_choice choose_workers();

/// "0-3,8" for {0, 1, 2, 3, 8}.
std::string to_ranges(std::span<const int> cpus);

/// What two CPUs share: the smaller, the cheaper it is to steal between them.
enum class distance { core, l2, l3, numa, package, machine };

/// Immutable; any thread may ask.
class topology {
 public:
  /// This machine, asked once (a few ms) at the first call. If hwloc fails, all CPUs are equally
  /// far: only speed depends on it.
  static const topology& machine();

  /// A machine from hwloc's synthetic notation, for example "pack:2 l3:2 core:4 pu:2". Throws
  /// strata::error when it is not that.
  static topology synthetic(const std::string& description);

  /// distance::core between a CPU and itself; distance::machine when one of them is unknown.
  [[nodiscard]] distance between(int a, int b) const noexcept;

  /// The order in which the worker on cpus[self] should visit the others: indices into `cpus`
  /// without `self`, nearest first. Among equally near ones each worker begins at its own
  /// successor, so that the thieves do not all knock at one door.
  [[nodiscard]] std::vector<unsigned> steal_order(std::span<const int> cpus, unsigned self) const;

  /// `count` CPUs out of `allowed` (ascending), nearest neighbours together: one per core first,
  /// then the cores' other hyper-threads, then round again when count is larger than the number of
  /// CPUs.
  [[nodiscard]] std::vector<int> place(std::span<const int> allowed, unsigned count) const;

 private:
  // For each CPU the objects that contain it, numbered by hwloc; -1 where the machine has none.
  struct location {
    int core = -1, l2 = -1, l3 = -1, numa = -1, package = -1;
  };
  struct loader;
  [[nodiscard]] const location* find(int cpu) const noexcept;

  std::vector<location> by_cpu_;  // index: CPU number
  std::vector<int> in_order_;     // CPU numbers in the order of the tree: neighbours are near
};

}  // namespace strata::os

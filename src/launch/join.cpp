// SPDX-License-Identifier: Apache-2.0
#include "launch/join.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/environment.hpp"
#include "launch/pmix/available.hpp"
#include "launch/pmix/mpi.hpp"
#include "launch/site.hpp"
#include "strata/error.hpp"
#if defined(STRATA_HAS_PMIX)
#include "launch/pmix/line.hpp"
#endif

namespace strata::launch {

namespace {

// How many times this process has joined a job of the site. PMIx knows processes, not objects in
// them, so this is the process's too.
std::atomic<unsigned> joined{0};

std::unique_ptr<control_line> join_by_pmix(const options& settings, unsigned time) {
#if defined(STRATA_HAS_PMIX)
  return pmix::join(settings, time);
#else
  (void)settings;
  (void)time;
  throw user_error(pmix::how_to_get());
#endif
}

}  // namespace

std::unique_ptr<control_line> join(const options& settings) {
  if (auto line = control_line::open()) return line;
  const bool again = joined.load() != 0;
  // A node of our launcher, whose first runtime has the line; or a child of a node.
  const bool may_choose = settings.launch.empty() || settings.launch == "auto";
  if (!again && may_choose && find_variable(node_variable) != nullptr) return nullptr;
  // On the other nodes there is no second runtime, unless their processes go on.
  if (again && !pmix::mpi_is_running()) return nullptr;
  const site where = look_at_site();
  if (!should_join(where, settings.launch)) {
    // Said once, not by each of them.
    const char* const first = find_variable("SLURM_PROCID");
    if (may_choose && find_variable(launch_variable) == nullptr && !where.hint.empty() &&
        (first == nullptr || std::atoi(first) == 0)) {
      std::fprintf(stderr, "strata: %s\n", where.hint.c_str());
    }
    return nullptr;
  }
  // Before PMIx has threads, which may read the environment.
  ::setenv(node_variable, where.rank.c_str(), 1);
  note_node();
  return join_by_pmix(settings, joined.fetch_add(1));
}

}  // namespace strata::launch

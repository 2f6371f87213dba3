// SPDX-License-Identifier: Apache-2.0
#include "launch/site.hpp"

#include <unistd.h>

#include <atomic>

#include "base/environment.hpp"
#include "base/shortened.hpp"
#include "base/values.hpp"
#include "launch/job.hpp"
#include "strata/error.hpp"
#include "strata/launched.hpp"
#include "strata/options.hpp"

namespace strata {

namespace launch {

namespace {

std::string variable(const char* name) {
  const char* const value = find_variable(name);
  return value != nullptr ? value : "";
}

// The number in a text that somebody else wrote; 0 when it is none.
unsigned number(const std::string& text) {
  try {
    return static_cast<unsigned>(parse_whole(text, 0, 1 << 30));
  } catch (const user_error&) {
    return 0;
  }
}

// The process that is the node which the variable numbers. Written by note_node(), read by
// is_the_node(); it stands for nothing else, so no order is needed.
std::atomic<pid_t> node_process{0};

// Our launcher's line is still to be taken, or this process has taken its place in a job.
bool is_the_node() {
  return find_variable(job_fd_variable) != nullptr ||
         node_process.load(std::memory_order_relaxed) == ::getpid();
}

std::string apart(const std::string& count, const std::string& what) {
  return what + " has started " + count +
         " processes that cannot find each other, so each runs by itself";
}

}  // namespace

site look_at_site() {
  site s;
  s.name_space = variable("PMIX_NAMESPACE");
  s.rank = variable("PMIX_RANK");
  s.has_pmix = !s.name_space.empty() && !s.rank.empty();
  if (s.has_pmix) return s;
  // Slurm sets it for the tasks of a step, not for the script of a batch job.
  const std::string tasks = variable("SLURM_STEP_NUM_TASKS");
  const std::string ranks = variable("PMI_SIZE");
  if (number(tasks) > 1) {
    s.hint = apart(tasks, "srun") + "; use srun --mpi=pmix";
  } else if (number(ranks) > 1) {
    s.hint = apart(ranks, "a launcher without PMIx") + "; use strata run, or Open MPI's mpirun";
  }
  return s;
}

bool should_join(const site& where, const std::string& wish) {
  std::string how = wish;
  if (how.empty()) how = variable(launch_variable);
  if (how.empty()) how = "auto";
  if (how == "none") return false;
  if (how == "pmix") {
    if (!where.has_pmix) {
      throw user_error(
          "launch=pmix, but no job of PMIx has started this process (PMIX_NAMESPACE and PMIX_RANK "
          "are not set); use srun --mpi=pmix or Open MPI's mpirun");
    }
    return true;
  }
  if (how != "auto") {
    throw user_error(std::string(launch_variable) + ": " + in_quotes(how) +
                     " is not a choice; the choices are: auto, none, pmix");
  }
  return where.has_pmix;
}

void note_node() noexcept { node_process.store(::getpid(), std::memory_order_relaxed); }

}  // namespace launch

std::optional<unsigned> launched_node(const options& settings) {
  const std::string node = launch::variable(launch::node_variable);
  const bool may_choose = settings.launch.empty() || settings.launch == "auto";
  if (!node.empty() && launch::is_the_node()) return launch::number(node);
  if (!node.empty() && may_choose) return std::nullopt;  // what a node has started is none
  const std::string wish =
      settings.launch.empty() ? launch::variable(launch::launch_variable) : settings.launch;
  const launch::site where = launch::look_at_site();
  if (!where.has_pmix || wish == "none") return std::nullopt;
  return launch::number(where.rank);
}

std::optional<unsigned> launched_node() { return launched_node(options{}); }

}  // namespace strata

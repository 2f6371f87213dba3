// SPDX-License-Identifier: Apache-2.0
// What the environment says about a launcher of the site: srun, mpirun and the like.
#pragma once
#include <string>

namespace strata::launch {

// The number of a node. `strata run` gives it to its nodes; a node that has joined a job of the
// site sets it too, so that neither its children nor its later runtimes join again.
inline constexpr const char* node_variable = "STRATA_NODE";
// What a program that does not parse options is told by: auto, none or pmix.
inline constexpr const char* launch_variable = "STRATA_LAUNCH";

struct site {
  bool has_pmix = false;   // this process belongs to a job of PMIx
  std::string name_space;  // the job's name there
  std::string rank;
  // For people: this process is one of several that have been started together in a way that does
  // not let them find each other. Empty: it is not.
  std::string hint;
};

site look_at_site();

// From now on this process is the node that the variable numbers: what it starts inherits that, and
// is none. Any thread.
void note_node() noexcept;

// Whether a process with this environment should join the site's job. `wish`: "auto", "none" or
// "pmix"; if it is empty the variable says so, and without that it is "auto".
bool should_join(const site& where, const std::string& wish);

}  // namespace strata::launch

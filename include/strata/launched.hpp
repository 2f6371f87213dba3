// SPDX-License-Identifier: Apache-2.0
// How this process was started, for what a program does before it makes its runtime.
#pragma once
#include <optional>

namespace strata {

struct options;

/// The number of this node, if the process was started as a node of a job: by `strata run`, or by
/// the site's tools (`srun --mpi=pmix`, Open MPI's `mpirun`) unless STRATA_LAUNCH=none. Nothing in
/// a process of its own, and in what a node has started. It can be asked before there is a runtime,
/// from the environment alone (it does not know the flag --strata-launch: set STRATA_LAUNCH where a
/// program asks so early):
///
///   if (strata::launched_node().value_or(0) == 0) std::puts("reading the input");
///
/// Any thread, while none changes the environment. Never blocks. Throws std::bad_alloc.
[[nodiscard]] std::optional<unsigned> launched_node();

/// The same for a process that makes its runtime with these settings: options::launch counts, which
/// a flag or a file may have set.
[[nodiscard]] std::optional<unsigned> launched_node(const options& settings);

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// How this process was started, for what a program does before it makes its runtime.
#pragma once
#include <optional>

namespace strata {

/// The number of this node, if the process was started as a node of a job: by `strata run`, or by
/// the site's tools (`srun --mpi=pmix`, Open MPI's `mpirun`) unless STRATA_LAUNCH=none. Nothing in
/// a process of its own. From the environment alone, so it can be asked before there is a runtime
/// (the flag --strata-launch it does not know: say STRATA_LAUNCH where a program asks):
///
///   if (strata::launched_node().value_or(0) == 0) std::puts("reading the input");
///
/// Any thread, while none changes the environment. Never blocks. Throws std::bad_alloc.
[[nodiscard]] std::optional<unsigned> launched_node();

}  // namespace strata

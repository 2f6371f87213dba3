// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace strata::launch::pmix {

// Whether MPI has been initialised in this process and not yet finalised. Such a process is MPI's:
// a node in it gives it back when the job is over. Neither links nor loads MPI.
[[nodiscard]] bool mpi_is_running() noexcept;

}  // namespace strata::launch::pmix

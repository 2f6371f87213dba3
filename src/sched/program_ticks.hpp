// SPDX-License-Identifier: Apache-2.0
// Under `strata pthread` all threads give way to others, and where they do that is told by the code
// that runs, not by marks as for preemptible threads (ticker.hpp): pthread/preload/ticks.hpp.
#pragma once

namespace strata::detail {

// From now on the calling OS thread, a worker's, is interrupted in what computes for long. There
// only where carries_program_locals is.
void begin_ticks_here() noexcept;

}  // namespace strata::detail

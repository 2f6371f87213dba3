// SPDX-License-Identifier: Apache-2.0
// In the child of a fork only the calling OS thread is left. What the others have held or waited
// for in here is forgotten. Called by that thread, before it waits for anything.
#pragma once

namespace strata::detail {

// Nobody waits anywhere.
void forget_parked() noexcept;
// There are no threads for blocking calls.
void forget_blocking_threads();

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace strata::preload {

// How many descriptors a select() that is asked for `count` looks at. The kernel stops at the size
// of the process's table, so programs ask for more than their sets have room for; our copies' high
// numbers make the table larger than the program knows. errno stays as it is.
[[nodiscard]] int select_reach(int count) noexcept;

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// Policies and priorities of threads, as POSIX has them: remembered and told, nothing else.
#pragma once

namespace strata::detail::posix {

// 0, EINVAL, or EPERM: whether the process may have it is for the kernel to say, though it means
// nothing to our threads.
[[nodiscard]] int check_scheduling(int policy, int priority) noexcept;

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
#include "threads/errno_here.hpp"

#include <cerrno>

namespace strata::detail {

[[gnu::noinline]] int errno_here() noexcept { return errno; }
[[gnu::noinline]] void set_errno_here(int error) noexcept { errno = error; }

}  // namespace strata::detail

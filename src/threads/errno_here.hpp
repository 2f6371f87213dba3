// SPDX-License-Identifier: Apache-2.0
// errno of the OS thread that runs us at this moment. The C library declares the function behind
// errno const, so a compiler may keep its address over a wait after which another OS thread runs
// us.
#pragma once

namespace strata::detail {

[[nodiscard]] int errno_here() noexcept;
void set_errno_here(int error) noexcept;
// As a call of the C library fails: -1, with errno.
inline int fail_with(int error) noexcept {
  set_errno_here(error);
  return -1;
}

}  // namespace strata::detail

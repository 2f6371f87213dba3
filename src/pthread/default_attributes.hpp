// SPDX-License-Identifier: Apache-2.0
// What pthreads have that are made without attributes: strata_pthread_setattr_default_np(). The
// size of stacks is the C library's, too, as fresh attributes tell it. The rest is kept here:
// kernel threads that this library makes for itself have to be joined and scheduled as ever.
#pragma once
#include <pthread.h>

#include <cstddef>

namespace strata::detail::posix {

// Before, they are what the C library has begun with, and need not be looked at.
[[nodiscard]] bool defaults_have_changed() noexcept;
// What a fresh attribute says of its stack.
[[nodiscard]] std::size_t default_stack_bytes() noexcept;

// Over a fork: the child's next thread asks for them.
void hold_default_attributes() noexcept;
void release_default_attributes() noexcept;

}  // namespace strata::detail::posix

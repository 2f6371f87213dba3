// SPDX-License-Identifier: Apache-2.0
// Memory that the program has given somebody as a stack. Its header stays on a stack of the pool,
// where it also begins and ends: so all lists of stacks are as they were, and the memory is the
// program's again before anybody hears of the end.
#pragma once
#include <cstddef>

#include "context/stack.hpp"

namespace strata::detail {

// f(argument), on these bytes, by who runs on s; returns when f has returned. Meanwhile s says that
// it lies there. Forks must go on elsewhere: a branch is looked for on stacks of pools. An
// exception that leaves f ends the program, as one that leaves a stack.
void call_on_memory(stack& s, std::byte* lowest, std::size_t bytes, void (*f)(void*),
                    void* argument);

}  // namespace strata::detail

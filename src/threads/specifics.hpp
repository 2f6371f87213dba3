// SPDX-License-Identifier: Apache-2.0
// Where a thread's values are.
#pragma once
#include <map>
#include <vector>

#include "strata/detail/specifics.hpp"

namespace strata::detail {

struct exit_call {
  void (*call)(void*) noexcept;
  void* argument;
};

// Destroys the values, in rounds, because their destructors can set others; what is still there
// after the last round is forgotten, as in POSIX. Then makes the calls; and so on, while these ask
// for more.
void end_specifics(std::map<const void*, specific_value>& values, std::vector<exit_call>& calls);

// Of the calling thread, which is one from outside.
void end_own_specifics();

}  // namespace strata::detail

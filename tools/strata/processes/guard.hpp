// SPDX-License-Identifier: Apache-2.0
// The process between us and our children. We may be killed in a way that leaves us no time to end
// what our children have started, and the kernel ends direct children only: so another process, our
// own copy, is their parent. It outlives us until all that is below it is gone. Should it be killed
// itself, all of that comes to us.
#pragma once
#include <sys/types.h>

#include "os/descriptor.hpp"
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

struct guard_ends {
  os::descriptor requests;  // guard_messages.hpp
  os::descriptor reports;   // ends when the guard does
  pid_t pid = -1;
};

// What helps where the system refuses a process.
inline constexpr const char* how_to_get_processes =
    "raise the limit of processes (ulimit -u, or the container's)";

// One thread. Throws strata::error.
guard_ends start_guard(const inherited_state& inherited);

}  // namespace strata::launcher

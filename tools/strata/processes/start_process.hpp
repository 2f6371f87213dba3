// SPDX-License-Identifier: Apache-2.0
// From a request to a process that runs the program.
#pragma once
#include <sys/types.h>

#include <span>

#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

// A descriptor that the process gets, and the number that it gets it under.
struct handed_over {
  int from = -1;
  int number = -1;
};

// What came of it: the process, or 0 and why there is none.
struct started_process {
  pid_t pid = 0;
  int code = 0;  // errno
  bool in_directory = false;
};

// Returns when the program runs. It is killed when this thread ends, however it does. `in`, `out`,
// `err` and `keep` of the request are not looked at: it gets `handed` in their place. Unless it has
// a session of its own it is put into `group`, or, where that is 0, stays in ours.
started_process start_process(const child_request& what, const inherited_state& inherited,
                              std::span<const handed_over> handed, pid_t group);

// Whether this very process was started so, whatever programs it has become since; false in those
// that it has started itself.
bool was_started_by_launcher();

}  // namespace strata::launcher

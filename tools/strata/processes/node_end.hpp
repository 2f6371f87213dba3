// SPDX-License-Identifier: Apache-2.0
// How a process ended, as the system says it and as people read it.
#pragma once
#include <string>

namespace strata::launcher {

struct node_end {
  bool signalled = false;
  int code = 0;  // the signal, or the exit status
  [[nodiscard]] bool failed() const noexcept { return signalled || code != 0; }
  // What a shell would say.
  [[nodiscard]] int status() const noexcept { return signalled ? 128 + code : code; }
};

// "was killed by signal 9 (SIGKILL)"
std::string to_text(node_end how);

}  // namespace strata::launcher

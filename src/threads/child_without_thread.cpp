// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstddef>
#include <string_view>

#include "threads/after_fork.hpp"

namespace strata::detail {

void end_child_without_thread() noexcept {
  constexpr std::string_view line =
      "strata: a child of fork() ends: it was made, and not left by exec() or _exit(), where a "
      "kernel thread of ours had called a handler or a function for another thread\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

}  // namespace strata::detail

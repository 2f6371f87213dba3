// SPDX-License-Identifier: Apache-2.0
// A signal that the process has been told to ignore (nohup, a shell's background) it ignores still.
#pragma once
#include <signal.h>

namespace mapview {

inline bool is_ignored_here(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace mapview

// SPDX-License-Identifier: Apache-2.0
// Whether what was printed has arrived.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "strata/error.hpp"

namespace strata {

// Of a write that failed: what is wrong, and what to do where somebody can.
inline std::string why_not_written(int code) {
  std::string why = std::string("standard output: ") + std::strerror(code);
  if (code == ENOSPC || code == EDQUOT) why += "; free some space or write elsewhere";
  return why;
}

// Throws user_error unless standard output has taken all: nobody has seen what it did not take. If
// its reader has gone, ends the process by SIGPIPE as any other, even where that signal is ignored.
inline void flush_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  if (errno == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw user_error(why_not_written(errno));
}

}  // namespace strata

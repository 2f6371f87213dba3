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

// For output that is lost, with the errno that said so: throws user_error. If its reader has gone,
// ends the process by SIGPIPE as any other, even where that signal is ignored.
[[noreturn]] inline void throw_not_written(int code) {
  if (code == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw user_error(why_not_written(code));
}

// Throws user_error unless standard output has taken all: nobody has seen what it did not take. Who
// has seen a write fail before calls throw_not_written(): the reason is known only then.
inline void flush_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw_not_written(errno);
}

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of a process that was started without some of them.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "strata/error.hpp"

namespace strata {

// A closed standard stream would give its number to a file or a socket. Who writes to it is refused
// as if it were closed, and says so. Called before anything else is opened.
inline void keep_numbers_of_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest number that is free, and programs that are started inherit it.
    if (::open("/dev/null", O_RDONLY) < 0)
      throw error(std::string("cannot open /dev/null: ") + std::strerror(errno));
  }
}

}  // namespace strata

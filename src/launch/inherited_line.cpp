// SPDX-License-Identifier: Apache-2.0
#include "launch/inherited_line.hpp"

#include <sys/socket.h>

#include "base/values.hpp"
#include "launch/job.hpp"
#include "strata/error.hpp"

namespace strata::launch {

int socket_named(const std::string& text) {
  const auto refuse = [&] {
    return user_error(
        std::string(job_fd_variable) + "=" + text +
        " is not a line to a launcher: unset it where it is left over; what strata run starts "
        "must not close descriptors before the program");
  };
  int fd = -1;
  try {
    fd = static_cast<int>(parse_whole(text, 0, 1 << 30));
  } catch (const user_error&) {
    throw refuse();
  }
  int type = 0;
  socklen_t bytes = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM) {
    throw refuse();
  }
  return fd;
}

// All processes that have inherited the socket see what is set there, also when the one that set it
// is gone. Among those of one host the kernel has no use for this; where it does not know it we
// believe to be the first.
void take_line(int fd) {
  constexpr int taken = 1;
  int mark = 0;
  socklen_t bytes = sizeof mark;
  const bool is_known = ::getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &mark, &bytes) == 0;
  if (is_known && mark == taken) {
    throw user_error(
        "another program has had this node's part in the job: start each of several with a strata "
        "run of its own; where " +
        std::string(job_fd_variable) + " is unset a program runs by itself");
  }
  (void)::setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &taken, sizeof taken);
}

}  // namespace strata::launch

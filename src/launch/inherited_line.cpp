// SPDX-License-Identifier: Apache-2.0
#include "launch/inherited_line.hpp"

#include <sys/socket.h>

#include "base/values.hpp"
#include "launch/job.hpp"
#include "strata/error.hpp"

namespace strata::launch {

int socket_named(const std::string& text) {
  const auto refuse = [&] {
    return error(
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

}  // namespace strata::launch

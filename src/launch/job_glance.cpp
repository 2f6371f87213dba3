// SPDX-License-Identifier: Apache-2.0
#include "launch/job_glance.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/environment.hpp"
#include "launch/frame.hpp"
#include "launch/inherited_line.hpp"
#include "launch/messages.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::launch {

std::optional<job_description> glance_at_job(std::int64_t limit_ns) {
  const char* const variable = find_variable(job_fd_variable);
  if (variable == nullptr) return std::nullopt;
  const int fd = socket_named(variable);
  const std::int64_t until_ns = os::now_ns() + limit_ns;
  std::string bytes(std::size_t{16} << 10, '\0');
  while (true) {
    const ssize_t seen = ::recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
    if (seen > 0) {
      frame_reader there;
      there.add({bytes.data(), static_cast<std::size_t>(seen)});
      try {
        if (const auto first = there.next()) {
          if (first->kind != frame_kind::welcome) return std::nullopt;
          return unpack_welcome(first->payload);
        }
      } catch (const error&) {
        // The rest of a frame that somebody else is reading.
        return std::nullopt;
      }
      if (static_cast<std::size_t>(seen) == bytes.size()) {
        bytes.resize(2 * bytes.size());
        continue;
      }
    }
    const std::int64_t left_ms = (until_ns - os::now_ns()) / 1'000'000;
    if (left_ms <= 0) return std::nullopt;
    // A part of a frame makes the line readable: the rest is to be waited for without it.
    constexpr std::int64_t pause_ms = 1;
    pollfd more{seen > 0 ? -1 : fd, POLLIN, 0};
    ::poll(&more, 1, static_cast<int>(seen > 0 ? pause_ms : std::min<std::int64_t>(left_ms, 1000)));
  }
}

}  // namespace strata::launch

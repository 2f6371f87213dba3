// SPDX-License-Identifier: Apache-2.0
#include "threads/socket_times.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>

#include "strata/detail/deadline.hpp"
#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"

namespace strata::detail {

std::int64_t own_deadline_ns(int fd, int option) noexcept {
  timeval longest{};
  socklen_t size = sizeof longest;
  const int error = errno_here();
  const bool known = ::getsockopt(fd, SOL_SOCKET, option, &longest, &size) == 0;
  set_errno_here(error);
  if (!known || (longest.tv_sec == 0 && longest.tv_usec == 0)) return parking::never;
  // More than deadline_after() takes for a time, and few enough to be counted in microseconds.
  constexpr std::int64_t most_s = 10'000'000'000;
  return deadline_after(std::chrono::seconds(std::min<std::int64_t>(longest.tv_sec, most_s)) +
                        std::chrono::microseconds(longest.tv_usec));
}

}  // namespace strata::detail

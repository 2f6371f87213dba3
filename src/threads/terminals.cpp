// SPDX-License-Identifier: Apache-2.0
#include "threads/terminals.hpp"

#include <sys/ioctl.h>
#include <termios.h>

#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"

namespace strata::detail {

std::int64_t longest_read_ns(int fd) noexcept {
  constexpr std::int64_t tenth_of_s_ns = 100'000'000;
  const int error = errno_here();
  termios settings{};
  // At the other end of one the settings are told, too, but reads go by none of them.
  int number = 0;
  const bool is_terminal = ioctl(fd, TIOCGPTN, &number) != 0 && tcgetattr(fd, &settings) == 0;
  set_errno_here(error);
  if (!is_terminal || (settings.c_lflag & ICANON) != 0 || settings.c_cc[VMIN] != 0)
    return parking::never;
  return settings.c_cc[VTIME] * tenth_of_s_ns;
}

}  // namespace strata::detail

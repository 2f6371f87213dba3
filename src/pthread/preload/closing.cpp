// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/closing.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/own_numbers.hpp"
#include "pthread/fork.hpp"
#include "pthread/preload/copies.hpp"
#include "pthread/wait.hpp"
#include "threads/errno_here.hpp"
#include "threads/reactor.hpp"

namespace strata::preload {
namespace {

// Of linux/close_range.h, which older systems lack: nothing is closed.
constexpr int only_close_on_exec = 1 << 2;

// True: it was ours, which has moved. Not in the child of a vfork(), which has descriptors of its
// own, and our memory.
bool make_way(int fd) {
  if (!os::is_own_number(fd) || detail::posix::is_in_child_of_vfork()) return false;
  const detail::posix::kept_errno keep;
  return descriptor_copy::move_away(fd) || detail::move_descriptor_waits(fd);
}

template <class Replace>
int with_room(int fd, int replaced, const Replace& call) {
  const bool has_moved = fd != replaced && make_way(replaced);
  const int answer = call();
  if (answer < 0 && has_moved) {
    const detail::posix::kept_errno keep;
    close(replaced);
  }
  return answer;
}

}  // namespace

int close_one(int fd) { return os::is_own_number(fd) ? detail::fail_with(EBADF) : close(fd); }

int close_range_of(unsigned first, unsigned last, int flags) {
  if ((flags & only_close_on_exec) != 0) return close_range(first, last, flags);
  unsigned from = first;
  for (;;) {
    const int own = os::next_own_number(from);
    const auto end = static_cast<unsigned>(own);
    if (own < 0 || end > last) break;
    if (end > from && close_range(from, end - 1, flags) != 0) return -1;
    from = end + 1;
  }
  return from == first || from <= last ? close_range(from, last, flags) : 0;
}

// Where the kernel has no close_range() the C library finds another way, which knows nothing of
// ours: that is for what lies behind them.
void close_from(int lowest) {
  const detail::posix::kept_errno keep;
  const int first = std::max(lowest, 0);
  if (close_range_of(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  int from = first;
  for (int own = os::next_own_number(static_cast<unsigned>(from)); own >= 0;
       own = os::next_own_number(static_cast<unsigned>(from))) {
    for (; from < own; ++from) close(from);
    from = own + 1;
  }
  closefrom(from);
}

int replace(int fd, int replaced) {
  return with_room(fd, replaced, [&] { return dup2(fd, replaced); });
}

int replace_with(int fd, int replaced, int flags) {
  return with_room(fd, replaced, [&] { return dup3(fd, replaced, flags); });
}

}  // namespace strata::preload

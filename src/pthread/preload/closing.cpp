// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/closing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "os/own_numbers.hpp"
#include "pthread/fork.hpp"
#include "pthread/holding.hpp"
#include "pthread/preload/copies.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/wait.hpp"
#include "sched/outside_section.hpp"
#include "threads/errno_here.hpp"

namespace strata::preload {
namespace {

// Of linux/close_range.h, which older systems lack: nothing is closed.
constexpr int only_close_on_exec = 1 << 2;

// Not in the child of a vfork(), which has our memory, and descriptors of its own: there it does to
// all what it says.
bool is_spared(int fd) noexcept {
  return os::is_own_number(fd) && !detail::posix::is_in_child_of_vfork();
}
// The lowest from `lowest` to `last`; -1: none.
int next_spared(unsigned lowest, unsigned last = ~0U) noexcept {
  const int own = os::next_own_number(lowest, last);
  return own >= 0 && is_spared(own) ? own : -1;
}

bool is_open(int fd) noexcept {
  const detail::posix::kept_errno keep;
  return fcntl(fd, F_GETFD) >= 0;
}

// The call, unless fd is ours. While it is nobody's no copy of those who wait gets it, or the call
// would act on that. What the program has open does not become ours: closing that may take its
// time. A handler that has interrupted who holds the lock goes without.
template <class Call>
int unless_spared(int fd, const Call& call) {
  if (fd < os::lowest_own_number.load(std::memory_order_relaxed)) [[likely]]
    return call();
  if (detail::posix::is_in_child_of_vfork()) return call();
  if (detail::outside_section::is_here() || descriptor_copy::is_locked_by_fork_here())
    return os::is_own_number(fd) ? detail::fail_with(EBADF) : call();
  {
    const detail::posix::holding held(descriptor_copy::lock());
    if (os::is_own_number(fd)) return detail::fail_with(EBADF);
    if (!is_open(fd)) return call();
  }
  return call();
}

}  // namespace

int close_one(int fd) {
  (void)can_be_suspended();  // a point of cancellation, before anything is closed
  return unless_spared(fd, [=] { return close(fd); });
}

int close_range_of(unsigned first, unsigned last, int flags) {
  if ((flags & only_close_on_exec) != 0) return close_range(first, last, flags);
  unsigned from = first;
  for (;;) {
    const int own = next_spared(from, last);
    if (own < 0) break;
    const auto end = static_cast<unsigned>(own);
    if (end > from && close_range(from, end - 1, flags) != 0) return -1;
    from = end + 1;
  }
  if (from == first || from <= last) return close_range(from, last, flags);
  // Nothing is left but what the flags say.
  return close_range(~0U, ~0U, flags);
}

// Where the kernel has no close_range() the C library finds another way, which knows nothing of
// ours: that is for what lies behind them.
void close_from(int lowest) {
  const detail::posix::kept_errno keep;
  const int first = std::max(lowest, 0);
  if (close_range_of(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  int from = first;
  for (int own = next_spared(static_cast<unsigned>(from)); own >= 0;
       own = next_spared(static_cast<unsigned>(from))) {
    for (; from < own; ++from) close(from);
    from = own + 1;
  }
  closefrom(from);
}

int replace(int fd, int replaced) {
  return unless_spared(replaced, [=] { return dup2(fd, replaced); });
}

int replace_with(int fd, int replaced, int flags) {
  return unless_spared(replaced, [=] { return dup3(fd, replaced, flags); });
}

}  // namespace strata::preload

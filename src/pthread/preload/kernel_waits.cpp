// SPDX-License-Identifier: Apache-2.0
// Each asks first whether there is anything to wait for: what is at hand costs no more than it did.
#include "pthread/preload/kernel_waits.hpp"

#include <cerrno>

#include "pthread/preload/elsewhere.hpp"
#include "pthread/wait.hpp"

namespace strata::preload {
namespace {

// Not those of the calling kernel thread alone.
bool has_to_wait_here(int options) noexcept {
  return (options & (WNOHANG | __WNOTHREAD)) != 0 || !detail::posix::stops_others();
}

}  // namespace

pid_t await_any(int* status) { return await_child_and_usage(-1, status, 0, nullptr); }

pid_t await_child(pid_t which, int* status, int options) {
  return await_child_and_usage(which, status, options, nullptr);
}

pid_t await_any_and_usage(int* status, int options, rusage* usage) {
  return await_child_and_usage(-1, status, options, usage);
}

pid_t await_child_and_usage(pid_t which, int* status, int options, rusage* usage) {
  if (has_to_wait_here(options)) return wait4(which, status, options, usage);
  const pid_t now = wait4(which, status, options | WNOHANG, usage);
  if (now != 0) return now;
  return elsewhere([&] { return wait4(which, status, options, usage); });
}

int await_child_by_id(idtype_t kind, id_t which, siginfo_t* found, int options) {
  if (has_to_wait_here(options)) return waitid(kind, which, found, options);
  siginfo_t now{};
  if (waitid(kind, which, &now, options | WNOHANG) != 0) return -1;
  if (now.si_pid == 0) return elsewhere([&] { return waitid(kind, which, found, options); });
  if (found != nullptr) *found = now;
  return 0;
}

int lock_file(int fd, int operation) {
  if ((operation & (LOCK_NB | LOCK_UN)) != 0 || !detail::posix::stops_others())
    return flock(fd, operation);
  // Who changes the kind of a lock gives it up first, whether or not he waits.
  const int now = flock(fd, operation | LOCK_NB);
  if (now == 0 || detail::errno_here() != EWOULDBLOCK) return now;
  return elsewhere([&] { return flock(fd, operation); }, ended_by::handlers_not_restart, false);
}

}  // namespace strata::preload

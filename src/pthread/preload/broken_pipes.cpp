// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/broken_pipes.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <ctime>

#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/worker.hpp"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

bool has_blocked_it() noexcept {
  if (detail::this_worker().owner == nullptr) return false;
  const posix::record* const r = posix::self_if_any();
  return r != nullptr && posix::has_signal(r->blocked, SIGPIPE);
}

sigset_t the_signal() noexcept {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGPIPE);
  return one;
}

}  // namespace

int flags_of_sender(int flags) noexcept { return has_blocked_it() ? flags | MSG_NOSIGNAL : flags; }

pipe_signal_kept_off::pipe_signal_kept_off() noexcept {
  if (!has_blocked_it() || !posix::runs_on_process_thread()) return;
  const sigset_t it = the_signal();
  pthread_sigmask(SIG_BLOCK, &it, &before_);
  on_ = true;
}

pipe_signal_kept_off::~pipe_signal_kept_off() {
  if (!on_) return;
  const posix::kept_errno keep;
  if (detail::errno_here() == EPIPE) {
    const sigset_t it = the_signal();
    const timespec at_once{0, 0};
    (void)sigtimedwait(&it, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/stop_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <strata/blocking.hpp>
#include <system_error>

namespace mapview {
namespace {

sigset_t which() {
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGINT);
  sigaddset(&some, SIGTERM);
  return some;
}

}  // namespace

stop_signals::stop_signals() {
  const sigset_t some = which();
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
  signals_ = ::signalfd(-1, &some, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

stop_signals::~stop_signals() { ::close(signals_); }

bool stop_signals::wait() {
  signalfd_siginfo one;
  if (strata::io::read(signals_, &one, sizeof one) < 0) return false;
  // One thread that takes them is enough.
  const sigset_t some = which();
  ::pthread_sigmask(SIG_UNBLOCK, &some, nullptr);
  return true;
}

void stop_signals::come() { ::kill(::getpid(), SIGTERM); }

}  // namespace mapview

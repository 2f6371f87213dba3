// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/signals.hpp"

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/errno_error.hpp"

namespace strata::launcher {

signal_events::signal_events(event_loop& loop, std::initializer_list<int> signals,
                             std::function<void(const signalfd_siginfo&)> on_signal)
    : loop_(loop), on_signal_(std::move(on_signal)) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) {
    // Blocked, an ignored signal would arrive nevertheless: nohup and background jobs mean it.
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = os::descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw errno_error("cannot wait for signals", errno);
  loop_.watch_reads(fd_.get(), [this] { read(); });
}

signal_events::~signal_events() {
  loop_.forget(fd_.get());
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void signal_events::read() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) on_signal_(info);
}

}  // namespace strata::launcher

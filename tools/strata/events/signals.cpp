// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

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
  std::vector<signalfd_siginfo> all;
  signalfd_siginfo one;
  while (::read(fd_.get(), &one, sizeof one) == sizeof one) all.push_back(one);
  // First that we have been continued: what others ask for has time from then on.
  std::stable_partition(all.begin(), all.end(), [](const signalfd_siginfo& info) {
    return info.ssi_signo == std::uint32_t{SIGCONT};
  });
  for (const signalfd_siginfo& info : all) on_signal_(info);
}

}  // namespace strata::launcher

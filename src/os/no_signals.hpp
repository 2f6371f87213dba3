// SPDX-License-Identifier: Apache-2.0
// Threads of the runtime take no signals: they are for the program's threads, which may have
// blocked them so that they wait for who asks for them.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace strata::os {

/// While it exists the calling OS thread has blocked all signals, and so have threads from their
/// beginning that it makes. errno stays as it is.
class no_signals {
 public:
  no_signals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~no_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;

  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_;
};

}  // namespace strata::os

// SPDX-License-Identifier: Apache-2.0
// SIGPIPE is sent to the OS thread that writes. A lightweight thread that has blocked it may run on
// one that has not, the process's first: there the kernel is kept from sending it, and the thread
// has it pending by take_broken_pipe() alone.
#pragma once
#include <signal.h>

namespace strata::preload {

// To send with: the same, or without the signal.
[[nodiscard]] int flags_of_sender(int flags) noexcept;

// While one exists a call that writes to a pipe sends the calling thread no signal that it has
// blocked. It must not be suspended meanwhile. errno stays as the call leaves it.
class pipe_signal_kept_off {
 public:
  pipe_signal_kept_off() noexcept;
  ~pipe_signal_kept_off();
  pipe_signal_kept_off(const pipe_signal_kept_off&) = delete;
  pipe_signal_kept_off& operator=(const pipe_signal_kept_off&) = delete;

 private:
  bool on_ = false;
  sigset_t before_;
};

}  // namespace strata::preload

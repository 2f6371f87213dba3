// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/signalfd.h>

#include <functional>
#include <initializer_list>

#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"

namespace strata::launcher {

// Signals as events. Those of the list are blocked while this lives, and handed to the callback.
class signal_events {
 public:
  signal_events(event_loop& loop, std::initializer_list<int> signals,
                std::function<void(const signalfd_siginfo&)> on_signal);
  ~signal_events();
  signal_events(const signal_events&) = delete;
  signal_events& operator=(const signal_events&) = delete;

 private:
  void read();

  event_loop& loop_;
  std::function<void(const signalfd_siginfo&)> on_signal_;
  sigset_t before_;
  os::descriptor fd_;
};

}  // namespace strata::launcher

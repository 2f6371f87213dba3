// SPDX-License-Identifier: Apache-2.0
// Threads that are interrupted far more often than a ticker would do it.
#pragma once
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "strata/thread.hpp"

namespace strata::test {

// Far more ticks than a ticker would send to this worker; then it is over.
inline std::thread crowd_of_ticks(std::atomic<bool>& over) {
  return std::thread([&over, worker = gettid()] {
    for (int i = 0; i < 30'000; ++i) syscall(SYS_tgkill, getpid(), worker, SIGURG);
    over = true;
  });
}

// use(goes_on), by a thread that is interrupted and by another one of its worker: what the first
// has locked when it is interrupted the other one would wait for, with the worker, for ever. Within
// a runtime whose threads can be interrupted.
template <class Use>
void share_with_an_interrupted_one(const Use& use) {
  std::atomic<bool> over{false};
  std::thread crowd = crowd_of_ticks(over);
  const auto come_and_go = [&](bool yields) {
    use([&] {
      if (yields) this_thread::yield();
      return !over;
    });
  };
  thread interrupted({.name = "interrupted", .preemptible = true}, come_and_go, false);
  thread other(come_and_go, true);
  interrupted.join();
  other.join();
  crowd.join();
}

}  // namespace strata::test

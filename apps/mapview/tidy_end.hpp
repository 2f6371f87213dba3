// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP end the process as they do by themselves, but what it has begun is put
// away before. A thread waits for them: any other one may be stuck in a read.
#pragma once
#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace mapview {

class tidy_end {
 public:
  // Before any other thread is made, which would not know. See ignored_signals.hpp.
  tidy_end();
  // From now on they end the process at once again.
  ~tidy_end();
  tidy_end(const tidy_end&) = delete;
  tidy_end& operator=(const tidy_end&) = delete;

  // While this lives, the first signal has put_away() called, in a thread of its own.
  class task {
   public:
    task(tidy_end& end, std::function<void()> put_away);
    ~task();
    task(const task&) = delete;
    task& operator=(const task&) = delete;

   private:
    tidy_end& end_;
  };

 private:
  void wait_for_signals();

  sigset_t signals_, mask_before_;
  std::mutex mutex_;  // held while put_away_ runs, and until the process has ended
  std::function<void()> put_away_;
  std::thread waiting_;
};

}  // namespace mapview

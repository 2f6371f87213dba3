// SPDX-License-Identifier: Apache-2.0
// A wait with a mask of its own, which lets signals in for as long as it lasts. A kernel thread
// with that mask waits in the calling thread's place: handlers for signals of the process run
// there, and end the wait.
#pragma once
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "os/clock.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "strata/detail/parking.hpp"

namespace strata::preload {

// Something has come for the calling thread itself that ends such a wait: its cancellation, a
// signal of pthread_kill() that `mask` lets in, or one that it has handled since this was made.
// Asked by who waits in its place.
class thread_news {
 public:
  thread_news();
  [[nodiscard]] bool are_there(const sigset_t& mask) const;
  // By the thread. Its cancellation does not return.
  void heed(const sigset_t& mask) const;

 private:
  void* const thread_;
  const std::uint32_t handlers_before_;
};

// Calls look(timeout, mask) until it does not say 0 or the time is over. The kernel does not know
// what ends a wait of ours, so we look again every 20 ms.
template <class Look>
int wait_with_mask(const sigset_t& mask, std::int64_t deadline_ns, const Look& look) {
  constexpr std::int64_t look_again_ns = 20'000'000;
  const thread_news news;
  bool are_there = false;
  const int answer = elsewhere(
      [&] {
        for (;;) {
          are_there = news.are_there(mask);
          if (are_there) return 0;
          const std::int64_t left_ns = deadline_ns - os::now_ns();
          const timespec t{0,
                           static_cast<long>(std::clamp<std::int64_t>(left_ns, 0, look_again_ns))};
          const int n = look(&t, &mask);
          if (n != 0 || left_ns <= look_again_ns) return n;
        }
      },
      ended_by::handlers);
  if (!are_there && (answer >= 0 || detail::errno_here() != EINTR)) return answer;
  news.heed(mask);
  return detail::fail_with(EINTR);
}

}  // namespace strata::preload

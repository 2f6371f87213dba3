// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/measure.hpp"

namespace bench {

// What it costs a thread of the program to enter a parallel region that does nothing and to leave
// it again. The shapes:
//   empty    one empty function; the caller is free to run it
//   caller   two empty functions which may run at the same time; the caller is free to run both
//   pair     two functions each of which waits for the other: two threads must take part
//   handoff  one empty function, which another thread must run
inline std::string region_shape(const arguments& given) {
  const std::string shape = given.rest.empty() ? "empty" : given.rest[0];
  if (shape != "empty" && shape != "caller" && shape != "pair" && shape != "handoff") {
    arguments::refuse("the parameter is a shape: empty, caller, pair or handoff");
  }
  return shape;
}

// Waits for a moment in which ready() holds. Gives the core away now and then, for machines with
// fewer cores than threads.
template <class Ready>
void spin_until(Ready&& ready) {
  for (unsigned turn = 1; !ready(); ++turn) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (turn % 4096 == 0) std::this_thread::yield();
  }
}

// Two threads meet here: both must be inside pass() before either leaves it.
class meeting {
 public:
  void pass() {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    spin_until([this] { return arrived_.load(std::memory_order_acquire) == 2; });
  }

 private:
  std::atomic<int> arrived_{0};
};

// Runs enter() again and again, in rounds; reports the median round.
template <class Enter>
int region_main(const char* implementation, const std::string& shape, unsigned workers,
                Enter&& enter) {
  constexpr int rounds = 21;
  constexpr int regions = 5000;
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(seconds_of([&] {
      for (int i = 0; i < regions; ++i) enter();
    }));
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return print("region", implementation, shape, workers, seconds[rounds / 2], regions, true);
}

}  // namespace bench

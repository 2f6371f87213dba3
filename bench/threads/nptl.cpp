// SPDX-License-Identifier: Apache-2.0
// Threads of the kernel, through the standard's types. std::barrier was the fastest of the barriers
// there are for them: the barrier of glibc and one of a mutex and a condition variable took 1.3 to
// 5 times as long.
#include <barrier>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bench/common/kernel_threads.hpp"
#include "bench/threads/kernel.hpp"

namespace {

struct nptl {
  using thread = std::thread;
  using mutex = std::mutex;
  using condition_variable = std::condition_variable;
  using barrier = std::barrier<>;
  static void meet(barrier& b) { b.arrive_and_wait(); }
  static void yield() { std::this_thread::yield(); }
};

}  // namespace

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  bench::keep_on_processors(given.workers);
  bench::use_small_stacks();
  return bench::threads_main<nptl>("nptl", given, true);
}

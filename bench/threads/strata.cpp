// SPDX-License-Identifier: Apache-2.0
#include "bench/common/strata.hpp"

#include <strata/thread.hpp>

#include "bench/threads/kernel.hpp"

namespace {

struct strata_threads {
  using thread = strata::thread;
  using mutex = strata::mutex;
  using condition_variable = strata::condition_variable;
  using barrier = strata::barrier<>;
  static void meet(barrier& b) { b.arrive_and_wait(); }
  static void yield() { strata::this_thread::yield(); }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::strata_main(argc, argv, [](const bench::arguments& given) {
    return bench::threads_main<strata_threads>("strata", given, false);
  });
}

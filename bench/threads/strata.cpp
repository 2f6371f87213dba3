// SPDX-License-Identifier: Apache-2.0
#include <strata/options.hpp>
#include <strata/runtime.hpp>
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
  strata::options options = strata::options::parse(argc, argv);  // --strata-policy
  const bench::arguments given(argc, argv);
  options.workers = given.workers;
  strata::runtime runtime(options);
  return runtime.run([&] { return bench::threads_main<strata_threads>("strata", given, false); });
}

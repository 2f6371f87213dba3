// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <thread>

#include "bench/bear/kernel.hpp"
#include "bench/common/kernel_threads.hpp"

namespace {

struct nptl {
  using thread = std::thread;
  static void yield() { std::this_thread::yield(); }
  static unsigned place() { return numbers[static_cast<std::size_t>(sched_getcpu())]; }

  // Of each processor that is kept, counted from 0.
  static inline std::vector<unsigned> numbers;
  static void number_processors() {
    cpu_set_t kept;
    if (sched_getaffinity(0, sizeof kept, &kept) != 0) {
      bench::arguments::refuse("sched_getaffinity");
    }
    unsigned count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      numbers.push_back(count);
      count += CPU_ISSET(cpu, &kept) ? 1 : 0;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  if (bench::keep_on_processors(given.workers) < given.workers) {
    bench::arguments::refuse("there are fewer processors than --workers");
  }
  bench::use_small_stacks();
  nptl::number_processors();
  return bench::distribution_main<nptl>("nptl", given);
}

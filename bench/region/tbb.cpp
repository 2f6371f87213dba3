// SPDX-License-Identifier: Apache-2.0
#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "bench/region/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  const std::string shape = bench::region_shape(given);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  shape == "handoff" ? given.workers + 1 : given.workers);
  const auto report = [&](auto&& enter) {
    return bench::region_main("tbb", shape, given.workers, enter);
  };
  if (shape == "empty") {
    return report([] {
      tbb::task_group group;
      group.run_and_wait([] {});
    });
  }
  if (shape == "caller") {
    return report([] { tbb::parallel_invoke([] {}, [] {}); });
  }
  if (shape == "pair") {
    if (given.workers < 2) bench::arguments::refuse("a pair needs --workers 2");
    return report([] {
      bench::meeting here;
      tbb::parallel_invoke([&] { here.pass(); }, [&] { here.pass(); });
    });
  }
  // An arena without a place for the caller: enqueue() is for other threads.
  tbb::task_arena arena(static_cast<int>(given.workers), 0);
  return report([&] {
    std::atomic<bool> ran{false};
    arena.enqueue([&ran] { ran.store(true, std::memory_order_release); });
    bench::spin_until([&ran] { return ran.load(std::memory_order_acquire); });
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/common/strata.hpp"

#include <strata/fork_join.hpp>

#include "bench/region/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  const std::string shape = bench::region_shape(given);
  bench::strata_environment environment(given.workers);
  strata::runtime& runtime = environment.runtime();
  const auto report = [&](auto&& enter) {
    return bench::region_main("strata", shape, given.workers, enter);
  };
  if (shape == "empty") {
    return report([&] { runtime.run([] {}); });
  }
  if (shape == "caller") {
    return report([&] { runtime.run([] { strata::fork2join([] {}, [] {}); }); });
  }
  if (shape == "pair") {
    if (given.workers < 2) bench::arguments::refuse("a pair needs --workers 2");
    return report([&] {
      bench::meeting here;
      runtime.run([&] { strata::fork2join([&] { here.pass(); }, [&] { here.pass(); }); });
    });
  }
  return report([&] {
    std::atomic<bool> ran{false};
    runtime.submit([&ran] { ran.store(true, std::memory_order_release); });
    bench::spin_until([&ran] { return ran.load(std::memory_order_acquire); });
  });
}

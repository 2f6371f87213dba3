// SPDX-License-Identifier: Apache-2.0
#include <strata/options.hpp>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>

#include "bench/bear/kernel.hpp"

namespace {

struct strata_threads {
  using thread = strata::thread;
  static void yield() { strata::this_thread::yield(); }
  static unsigned place() { return strata::detail::this_worker().id; }
};

}  // namespace

int main(int argc, char** argv) {
  strata::options options = strata::options::parse(argc, argv);  // --strata-policy
  const bench::arguments given(argc, argv);
  options.workers = given.workers;
  strata::runtime runtime(options);
  return runtime.run([&] { return bench::distribution_main<strata_threads>("strata", given); });
}

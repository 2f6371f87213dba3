// SPDX-License-Identifier: Apache-2.0
#include "bench/common/strata.hpp"

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
  return bench::strata_main(argc, argv, [](const bench::arguments& given) {
    return bench::distribution_main<strata_threads>("strata", given);
  });
}

// SPDX-License-Identifier: Apache-2.0
// A region of OpenMP is run by every thread of the team: `empty` is the region as OpenMP has it,
// `pair` means the same as elsewhere, and the other shapes do not exist.
#include <omp.h>

#include "bench/region/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  const std::string shape = bench::region_shape(given);
  const int threads = static_cast<int>(given.workers);
  if (shape == "empty") {
    return bench::region_main("openmp", shape, given.workers, [threads] {
#pragma omp parallel num_threads(threads)
      { bench::opaque(0); }
    });
  }
  if (shape != "pair" || threads != 2) {
    bench::arguments::refuse("OpenMP has the shapes empty and, with --workers 2, pair");
  }
  return bench::region_main("openmp", shape, given.workers, [threads] {
    bench::meeting here;
#pragma omp parallel num_threads(threads)
    here.pass();
  });
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

namespace bench {

// work() runs once, in a team of this many threads which take the tasks it makes.
class openmp_environment {
 public:
  explicit openmp_environment(unsigned workers) : workers_(static_cast<int>(workers)) {}
  template <class F>
  void run(F&& work) {
#pragma omp parallel num_threads(workers_)
#pragma omp single
    work();
  }

 private:
  int workers_;
};

}  // namespace bench

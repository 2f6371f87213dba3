// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <utility>

namespace bench {

class tbb_environment {
 public:
  explicit tbb_environment(unsigned workers)
      : limit_(tbb::global_control::max_allowed_parallelism, workers),
        arena_(static_cast<int>(workers)) {}
  template <class F>
  void run(F&& work) {
    arena_.execute(std::forward<F>(work));
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
};

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <strata/options.hpp>
#include <strata/runtime.hpp>
#include <utility>

namespace bench {

class strata_environment {
 public:
  explicit strata_environment(unsigned workers) : runtime_(settings(workers)) {}
  template <class F>
  void run(F&& work) {
    runtime_.run(std::forward<F>(work));
  }
  strata::runtime& runtime() { return runtime_; }

 private:
  static strata::options settings(unsigned workers) {
    strata::options o;
    o.workers = workers;
    return o;
  }
  strata::runtime runtime_;
};

}  // namespace bench

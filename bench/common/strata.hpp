// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <strata/options.hpp>
#include <strata/runtime.hpp>
#include <utility>

#include "bench/common/measure.hpp"

namespace bench {

// main() of a program that runs body(arguments) on so many workers; reads --strata-policy and the
// like, too.
template <class F>
int strata_main(int argc, char** argv, F body) {
  strata::options options = strata::options::parse_or_exit(argc, argv);
  const arguments given(argc, argv);
  options.workers = given.workers;
  strata::runtime runtime(options);
  return runtime.run([&] { return body(given); });
}

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <strata/runtime.hpp>
#include <vector>

namespace radixsort {

// How long each worker had nothing to run, asleep or looking for something, between start() and
// stop(), summed over all such periods: Table 3 of the paper.
class idle_meter {
 public:
  // Without a runtime it measures nothing.
  explicit idle_meter(const strata::runtime* runtime) : runtime_(runtime) {
    if (runtime != nullptr) milliseconds_.resize(runtime->workers());
  }

  void start() { add(-1); }
  void stop() { add(1); }

  // Of each worker; empty without a runtime.
  const std::vector<double>& milliseconds() const { return milliseconds_; }

 private:
  void add(double sign) {
    if (runtime_ == nullptr) return;
    const strata::statistics now = runtime_->stats();
    for (std::size_t w = 0; w < milliseconds_.size(); ++w) {
      for (const strata::bucket b :
           {strata::bucket::idle, strata::bucket::steal, strata::bucket::steal_wait}) {
        milliseconds_[w] +=
            sign * static_cast<double>(now.workers[w].ns[static_cast<std::size_t>(b)]) / 1e6;
      }
    }
  }

  const strata::runtime* const runtime_;
  std::vector<double> milliseconds_;
};

}  // namespace radixsort

// SPDX-License-Identifier: Apache-2.0
// What a runtime's settings say of seeing what its threads do.
#pragma once
#include "threads/dump.hpp"

namespace strata {
struct options;
}

namespace strata::detail {

// Whoever starts workers makes one and keeps it as long as they are there: options::dump_signal
// holds meanwhile, options::detect_deadlock from then on.
class seeing {
 public:
  explicit seeing(const options& settings);

 private:
  const dump_signal dump_;
};

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <strata/thread.hpp>

namespace radixsort {

// The runtime's threads; to be used inside a runtime.
struct strata_threads {
  using thread = strata::thread;
  template <class Completion>
  using barrier = strata::barrier<Completion>;
};

}  // namespace radixsort

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "strata/detail/worker.hpp"

namespace strata::detail {

// This thread is no worker meanwhile: it has given up its place, or is about to.
struct without_worker {
  worker* const here = std::exchange(strata_current_worker, &no_worker);
  without_worker() = default;
  without_worker(const without_worker&) = delete;
  without_worker& operator=(const without_worker&) = delete;
  ~without_worker() { strata_current_worker = here; }
};

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "threads/seeing.hpp"

#include "strata/detail/deadlock.hpp"
#include "strata/options.hpp"

namespace strata::detail {

seeing::seeing(const options& settings) : dump_(settings.dump_signal) {
  if (settings.detect_deadlock) locks_are_watched.store(true, std::memory_order_relaxed);
}

}  // namespace strata::detail

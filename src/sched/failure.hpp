// SPDX-License-Identifier: Apache-2.0
// Who waits for a computation of fibers: it must hear when that has failed, and can say what it
// waits for.
#pragma once
#include <exception>
#include <string>

#include "strata/detail/worker.hpp"

namespace strata::detail {

class failure_listener {
 public:
  // Called once at most, under the scheduler's lock, on worker w, when no fiber runs any more. Must
  // not block.
  virtual void computation_failed(worker& w, const std::exception_ptr& error) noexcept = 0;
  // "a completion that awaits 2 signals"
  [[nodiscard]] virtual std::string describe() const = 0;

 protected:
  ~failure_listener() = default;
};

}  // namespace strata::detail

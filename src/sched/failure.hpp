// SPDX-License-Identifier: Apache-2.0
// Who waits for a computation of fibers: it must hear when that has failed, and can say what it
// waits for.
#pragma once
#include <exception>
#include <string>

#include "strata/detail/worker.hpp"

namespace strata::detail {

class computation_failure;

class failure_listener {
 public:
  // Called once at most, under the scheduler's lock, on worker w, when no fiber runs any more. Must
  // not block.
  virtual void computation_failed(worker& w, const std::exception_ptr& error) noexcept = 0;
  // "a completion that awaits 2 signals"
  [[nodiscard]] virtual std::string describe() const = 0;

 protected:
  failure_listener() = default;
  ~failure_listener() = default;

 private:
  // Its place in the list of those who listen, which takes no memory: who waits cannot be refused,
  // since the signals that it waits for are on their way. With the lock of that.
  friend computation_failure;
  failure_listener* next_ = nullptr;
  failure_listener* previous_ = nullptr;
  bool listens_ = false;
};

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// Who makes stacks of a runtime ready and is none of its workers: the runtime does not end before
// it has left.
#pragma once
#include "sched/scheduler.hpp"

namespace strata::detail {

class foreign_waker {
 public:
  // `s` exists now.
  explicit foreign_waker(scheduler& s) noexcept : host_(s.admit_foreign_waker()) {}
  ~foreign_waker() {
    if (host_ != nullptr) host_->foreign_waker_leaves();
  }
  foreign_waker(const foreign_waker&) = delete;
  foreign_waker& operator=(const foreign_waker&) = delete;

 private:
  scheduler* const host_;
};

}  // namespace strata::detail

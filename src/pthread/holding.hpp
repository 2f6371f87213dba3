// SPDX-License-Identifier: Apache-2.0
// A spin lock for a section of the runtime. Its holder is not interrupted: a preemptible thread
// that were would leave the lock to a worker that spins for it and never comes back to the holder.
#pragma once
#include "strata/detail/worker.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail::posix {

class holding {
 public:
  explicit holding(spin_lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~holding() { lock_.unlock(); }
  holding(const holding&) = delete;
  holding& operator=(const holding&) = delete;

 private:
  const uninterrupted guard_;  // for longer than the lock
  spin_lock& lock_;
};

}  // namespace strata::detail::posix

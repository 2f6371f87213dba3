// SPDX-License-Identifier: Apache-2.0
// A spin lock for a section of the runtime. Its holder is not interrupted: a preemptible thread
// that were would leave the lock to a worker that spins for it and never comes back to the holder;
// and handlers that interrupt a thread without a worker put off what needs the lock.
#pragma once
#include "sched/outside_section.hpp"
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
  // Both for longer than the lock.
  const outside_section here_;
  const uninterrupted guard_;
  spin_lock& lock_;
};

}  // namespace strata::detail::posix

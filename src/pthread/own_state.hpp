// SPDX-License-Identifier: Apache-2.0
// Programs and OS threads inherit what the OS thread that makes them has blocked, and its affinity.
// A worker of pthreads made outside any runtime blocks all signals, and is bound: neither says
// anything of the thread that it runs.
#pragma once
#include <signal.h>

#include "pthread/affinity.hpp"
#include "pthread/record.hpp"

namespace strata::detail::posix {

// What the calling thread has blocked, whatever its worker has.
[[nodiscard]] sigset_t mask_of_caller() noexcept;

// While one exists the calling OS thread has what the thread that it runs has. In a section. Also
// in the child of a vfork(), which has the parent's memory and a mask of its own: nothing is
// written there that only its end would take back. errno stays as it is.
class own_state {
 public:
  own_state() noexcept;
  ~own_state();
  own_state(const own_state&) = delete;
  own_state& operator=(const own_state&) = delete;

 private:
  const bool changed_;
  sigset_t before_{};
  const own_affinity affinity_{self_if_any()};
};

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
// Many descriptors, one wait: the kernel has a set of them, and the set is what the thread waits
// for.
#pragma once
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pthread/preload/copies.hpp"
#include "threads/polling_backoff.hpp"

namespace strata::preload {

class wait_set {
 public:
  enum class outcome {
    ready,  // perhaps
    late,
    handled,     // a handler has run
    impossible,  // no descriptor, memory or kernel thread to wait with
  };

  // fds[i].events, as poll() has them; those with a negative number are none. Without any there is
  // only the time to wait for.
  wait_set(const pollfd* fds, std::size_t count) : fds_(fds), count_(count) {}

  // Suspends the calling thread, and acts on its cancellation.
  outcome wait(std::int64_t deadline_ns);

 private:
  bool begin();
  bool fill();

  const pollfd* const fds_;
  const std::size_t count_;
  std::optional<descriptor_copy> watched_;
  int waits_for_ = -1;
  short events_ = 0;
  bool begun_ = false;
  bool is_empty_ = false;
  detail::polling_backoff in_vain_{detail::polling_backoff::looks_in_vain};
};

}  // namespace strata::preload

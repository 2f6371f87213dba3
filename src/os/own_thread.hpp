// SPDX-License-Identifier: Apache-2.0
// The kernel threads that the library has made for itself. They are counted, so that those of the
// program can be told from them: by a name they cannot, for a thread has that of who made it.
#pragma once

namespace strata::os {

// In the function that such a thread runs: names it, and counts it for as long as it is in there.
class own_thread {
 public:
  explicit own_thread(const char* name) noexcept;
  ~own_thread();
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;

 private:
  unsigned generation_;  // the process that has counted it
};

// Whether the process has kernel threads beside its first one, ours and the
// kernel's own (io_uring's). One of ours that begins or
// ends just now may be taken for one. False where /proc does not say.
[[nodiscard]] bool has_other_threads() noexcept;

// In the child of a fork, where none of them is.
void forget_own_threads() noexcept;

}  // namespace strata::os

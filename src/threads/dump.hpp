// SPDX-License-Identifier: Apache-2.0
// A dump on a signal.
#pragma once
#include <string_view>

namespace strata::detail {

// While one exists, the signal makes a thread of ours print what all threads do, and what the
// workers do, on stderr. The handler that was there before is called, too.
class dump_signal {
 public:
  // "none", "QUIT", "USR1", "USR2" or "HUP". Throws std::system_error where the system has no
  // thread for it.
  explicit dump_signal(std::string_view name);
  ~dump_signal();
  dump_signal(const dump_signal&) = delete;
  dump_signal& operator=(const dump_signal&) = delete;

 private:
  bool on_ = false;
};

}  // namespace strata::detail

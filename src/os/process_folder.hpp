// SPDX-License-Identifier: Apache-2.0
// Whether what /proc tells of processes is about those that we know by the same numbers.
#pragma once
#include <unistd.h>

#include <array>
#include <cstdio>

namespace strata::os {

/// Whether /proc is that of our PID namespace. In one that somebody has made without mounting it
/// anew (unshare -pf) there is that of outside, where a number may be that of another process; and
/// it may be missing.
inline bool has_proc_our_numbers() noexcept {
  std::array<char, 16> own{}, told{};
  std::snprintf(own.data(), own.size(), "%d", ::getpid());
  return ::readlink("/proc/self", told.data(), told.size() - 1) > 0 && own == told;
}

}  // namespace strata::os

// SPDX-License-Identifier: Apache-2.0
// A system that has no more threads to give. Not with sanitizers, which need the addresses.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace strata::test {

// From now on the system refuses threads to this process: a stack does not fit into what is left.
inline void refuse_threads(rlim_t bytes_left = rlim_t{1} << 20) {
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
  limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes_left;
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
}

// No longer.
inline void allow_threads() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// A system that has no more threads to give. Not with sanitizers, which need the addresses.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace strata::test {

// From now on the system refuses threads to this process: a stack does not fit any more.
inline void refuse_threads() {
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1 << 20);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Runtimes in which stacks run out soon. Where the system gives no more addresses, that is for the
// rest of the process: in a child, which says whether all was right.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "support.hpp"

namespace strata::test {

// So large that few of them have room.
inline options with_large_stacks(unsigned workers) {
  options o = with_workers(workers);
  o.stack_bytes = std::size_t{1} << 30;
  return o;
}

// ThreadSanitizer needs the addresses.
#if !defined(STRATA_TSAN)

// From now on the system gives this process no address space but so much, and some for its threads.
inline void refuse_address_space(rlim_t but = 0) {
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (32U << 20) + but;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
}

inline int say(bool right) {
  std::fputs(right ? "right\n" : "wrong\n", stderr);
  return right ? 0 : 1;
}

#endif

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Two threads that wait, seen from gdb, which stops here: see gdb_test.sh.
#include <cstdlib>

#include "strata/runtime.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

[[gnu::noinline]] void wait_in_the_depths(strata::counting_semaphore<>& s) {
  s.acquire();
  asm volatile("");
}

extern "C" [[gnu::noinline]] void stop_here() { asm volatile(""); }

int main() {
  strata::options o;
  o.workers = 1;
  strata::runtime rt(o);
  rt.run([] {
    strata::counting_semaphore<> s(0);
    strata::thread a({.name = "alpha"}, [&] { wait_in_the_depths(s); });
    strata::thread b({.name = "a name that is too long for the string itself"},
                     [&] { s.acquire(); });
    strata::this_thread::yield();
    stop_here();
    s.release(2);
    a.join();
    b.join();
  });
  return EXIT_SUCCESS;
}

// SPDX-License-Identifier: Apache-2.0
// Threads of all kinds that wait, seen from gdb, which stops here: see gdb_test.sh.
#include <cstdlib>

#include "strata/pthread.h"
#include "strata/runtime.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

[[gnu::noinline]] void wait_in_the_depths(strata::counting_semaphore<>& s) {
  s.acquire();
  asm volatile("");
}

extern "C" [[gnu::noinline]] void stop_here() { asm volatile(""); }

pthread_t begin_pthread(strata::counting_semaphore<>& s) {
  pthread_t made{};
  const auto wait = [](void* it) -> void* {
    static_cast<strata::counting_semaphore<>*>(it)->acquire();
    return nullptr;
  };
  if (strata_pthread_create(&made, nullptr, wait, &s) != 0) std::abort();
  return made;
}

// A name like those that the script knows the library's own threads by.
void kind_of_work() {
  strata::options o;
  o.workers = 1;
  strata::runtime rt(o);
  rt.run([] {
    strata::counting_semaphore<> s(0);
    strata::thread a({.name = "alpha"}, [&] { wait_in_the_depths(s); });
    strata::thread b({.name = "a name that is too long for the string itself"},
                     [&] { s.acquire(); });
    strata::thread sized({.stack_bytes = 1 << 20}, [&] { s.acquire(); });
    const pthread_t unnamed = begin_pthread(s);
    const pthread_t named = begin_pthread(s);
    strata_pthread_setname_np(named, "gamma");
    strata::counting_semaphore<> woken(0);
    strata::thread delta({.name = "delta"}, [&] { woken.acquire(); });
    strata::this_thread::yield();
    woken.release();  // it goes on when this thread waits
    stop_here();
    s.release(5);
    delta.join();
    a.join();
    b.join();
    sized.join();
    strata_pthread_join(unnamed, nullptr);
    strata_pthread_join(named, nullptr);
  });
}

int main() {
  kind_of_work();
  return EXIT_SUCCESS;
}

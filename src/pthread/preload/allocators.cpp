// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/allocators.hpp"

#include <sched.h>
#include <time.h>

#include <cerrno>

#include "pthread/wait.hpp"
#include "strata/pthread.h"

namespace strata::preload {

constinit allocator_place the_allocator;

namespace {

// Not for ever: its holder may wait for what our worker has yet to run, as one does that joins a
// thread of the allocator.
[[gnu::noinline]] int lock_on_worker(pthread_mutex_t* mutex) {
  const detail::posix::kept_errno keep;
  constexpr int yields_max = 100;
  constexpr int times_max = 20'000;
  constexpr timespec a_little{0, 50'000};
  for (int times = 0; times < times_max; ++times) {
    const int answer = strata_pthread_mutex_trylock(mutex);
    if (answer != EBUSY) return answer;
    if (times < yields_max) {
      sched_yield();
    } else {
      nanosleep(&a_little, nullptr);
    }
  }
  return strata_pthread_mutex_lock(mutex);
}

}  // namespace

void note_allocator(const address_range& all) noexcept {
  the_allocator.begin.store(all.begin, std::memory_order_relaxed);
  the_allocator.end.store(all.end, std::memory_order_relaxed);
}

int lock_mutex(pthread_mutex_t* mutex) {
  if (is_allocators(__builtin_return_address(0))) [[unlikely]]
    return lock_on_worker(mutex);
  return strata_pthread_mutex_lock(mutex);
}

int let_others_go() {
  return is_allocators(__builtin_return_address(0)) ? sched_yield() : strata_sched_yield();
}

int sleep_for(const timespec* time, timespec* left) {
  return is_allocators(__builtin_return_address(0)) ? nanosleep(time, left)
                                                    : strata_nanosleep(time, left);
}

}  // namespace strata::preload

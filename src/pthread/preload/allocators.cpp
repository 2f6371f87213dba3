// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/allocators.hpp"

#include <sched.h>
#include <time.h>

#include <cerrno>

#include "pthread/on_worker.hpp"
#include "pthread/wait.hpp"
#include "strata/pthread.h"

namespace strata::preload {

constinit allocator_place the_allocator;

namespace {

[[gnu::noinline]] int lock_on_worker(pthread_mutex_t* mutex) {
  const detail::posix::kept_errno keep;
  int answer = EBUSY;
  const bool is_over = detail::posix::attempt_on_worker([&] {
    answer = strata_pthread_mutex_trylock(mutex);
    return answer != EBUSY;
  });
  return is_over ? answer : strata_pthread_mutex_lock(mutex);
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

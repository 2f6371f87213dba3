// SPDX-License-Identifier: Apache-2.0
// An allocator that comes as a library, such as libjemalloc. The runtime calls it as well, with
// locks of its own and on stacks that cannot be given up. Nobody is interrupted in there, so its
// locks are held for moments: who waits for one keeps the worker, and waits on it.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "pthread/preload/objects.hpp"

namespace strata::preload {

// Where that is loaded; nowhere, if the C library's or the executable's own is in use. Relaxed:
// written before there are threads.
struct allocator_place {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
};
extern constinit allocator_place the_allocator;

void note_allocator(const address_range& all) noexcept;

inline bool is_allocators(const void* code) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(code);
  return the_allocator.begin.load(std::memory_order_relaxed) <= at &&
         at < the_allocator.end.load(std::memory_order_relaxed);
}

// pthread_mutex_lock(), sched_yield(), nanosleep().
int lock_mutex(pthread_mutex_t* mutex);
int let_others_go();
int sleep_for(const timespec* time, timespec* left);

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "pthread/wait.hpp"
#include "strata/detail/barrier_core.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

struct state {
  barrier_core* core;
  std::atomic<std::uint64_t> arrivals;
  std::atomic<std::uint32_t> inside;  // have begun to wait and not yet left
  std::uint32_t count;
};
static_assert(sizeof(state) <= sizeof(pthread_barrier_t));

state& state_of(pthread_barrier_t* b) noexcept { return *reinterpret_cast<state*>(b); }

void nothing(void*) {}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                unsigned count) {
  if (count == 0 || count > INT_MAX) return EINVAL;
  if (attributes != nullptr) {
    int shared = 0;
    if (const int error = pthread_barrierattr_getpshared(attributes, &shared)) return error;
    if (shared != PTHREAD_PROCESS_PRIVATE) return ENOTSUP;
  }
  std::memset(static_cast<void*>(barrier), 0, sizeof *barrier);
  state& b = state_of(barrier);
  try {
    b.core = new barrier_core(static_cast<std::ptrdiff_t>(count), &nothing, nullptr);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  b.count = count;
  return 0;
}

int strata_pthread_barrier_destroy(pthread_barrier_t* barrier) {
  state& b = state_of(barrier);
  if (b.core == nullptr) return EINVAL;
  if (b.arrivals.load(std::memory_order_acquire) % b.count != 0) return EBUSY;
  // Those whom the last one has let go may still be about to leave.
  while (b.inside.load(std::memory_order_acquire) != 0) strata_sched_yield();
  delete std::exchange(b.core, nullptr);
  return 0;
}

int strata_pthread_barrier_wait(pthread_barrier_t* barrier) {
  state& b = state_of(barrier);
  if (b.core == nullptr) return EINVAL;
  const kept_errno keep;
  b.inside.fetch_add(1, std::memory_order_relaxed);
  b.arrivals.fetch_add(1, std::memory_order_relaxed);
  const bool last = b.core->arrive_and_wait();
  // The last access. Partner: strata_pthread_barrier_destroy().
  b.inside.fetch_sub(1, std::memory_order_release);
  return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
}

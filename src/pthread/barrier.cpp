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
  std::uint32_t shared;  // by processes: there is no core
};
static_assert(sizeof(state) <= sizeof(pthread_barrier_t));

state& state_of(pthread_barrier_t* b) noexcept { return *reinterpret_cast<state*>(b); }

void nothing(void*) {}

// `before` have arrived before the caller.
bool wait_shared(state& b, std::uint64_t before) {
  const std::uint64_t phase = before / b.count;
  if ((before + 1) % b.count == 0) return true;
  patience between("barrier of several processes");
  while (b.arrivals.load(std::memory_order_acquire) / b.count == phase)
    (void)between.pause({}, false);
  return false;
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                unsigned count) {
  if (count == 0 || count > INT_MAX) return EINVAL;
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) {
    if (const int error = pthread_barrierattr_getpshared(attributes, &shared)) return error;
  }
  std::memset(static_cast<void*>(barrier), 0, sizeof *barrier);
  state& b = state_of(barrier);
  b.count = count;
  if (shared == PTHREAD_PROCESS_SHARED) {
    b.shared = 1;
    return 0;
  }
  try {
    b.core = new barrier_core(static_cast<std::ptrdiff_t>(count), &nothing, nullptr);
  } catch (const std::bad_alloc&) {
    b.count = 0;
    return ENOMEM;
  }
  return 0;
}

int strata_pthread_barrier_destroy(pthread_barrier_t* barrier) {
  state& b = state_of(barrier);
  if (b.count == 0) return EINVAL;
  if (b.arrivals.load(std::memory_order_acquire) % b.count != 0) return EBUSY;
  // Those whom the last one has let go may still be about to leave.
  while (b.inside.load(std::memory_order_acquire) != 0) strata_sched_yield();
  delete std::exchange(b.core, nullptr);
  b.count = 0;
  return 0;
}

int strata_pthread_barrier_wait(pthread_barrier_t* barrier) {
  state& b = state_of(barrier);
  if (b.count == 0) return EINVAL;
  const kept_errno keep;
  b.inside.fetch_add(1, std::memory_order_relaxed);
  // Acquire-release: what all have done before is visible to all behind it.
  const std::uint64_t before = b.arrivals.fetch_add(1, std::memory_order_acq_rel);
  const bool last = b.shared != 0 ? wait_shared(b, before) : b.core->arrive_and_wait();
  // The last access. Partner: strata_pthread_barrier_destroy().
  b.inside.fetch_sub(1, std::memory_order_release);
  return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
}

// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include "pthread/wait.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

// As POSIX has it, the barrier is as new once `count` have arrived, while those may not have left
// yet: more threads than `count` can use it. Who arrives as number n belongs to batch n / count,
// and waits for the last one of that.
struct barrier_state {
  std::atomic<std::uint64_t> arrivals;
  std::atomic<std::uint32_t> inside;  // have begun to wait and not yet left
  std::uint32_t count;
  std::uint32_t shared;  // by processes
};
static_assert(sizeof(barrier_state) <= sizeof(pthread_barrier_t));

barrier_state& state_of(pthread_barrier_t* b) noexcept {
  return *reinterpret_cast<barrier_state*>(b);
}

struct place_in_batch {
  barrier_state& b;
  std::uint64_t batch;

  // Acquire: what all have done before the barrier.
  [[nodiscard]] bool must_wait() const noexcept {
    return b.arrivals.load(std::memory_order_acquire) / b.count == batch;
  }
};

void wait(place_in_batch mine) {
  polled_wait between("barrier of several processes");
  while (mine.must_wait()) {
    if (mine.b.shared != 0) {
      (void)between.pause({}, false);
      continue;
    }
    park({.what = "barrier",
          .address = &mine.b.arrivals,
          .still = [](void* it) { return static_cast<place_in_batch*>(it)->must_wait(); },
          .argument = &mine});
  }
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
  barrier_state& b = state_of(barrier);
  b.count = count;
  b.shared = shared == PTHREAD_PROCESS_SHARED ? 1 : 0;
  return 0;
}

int strata_pthread_barrier_destroy(pthread_barrier_t* barrier) {
  barrier_state& b = state_of(barrier);
  if (b.count == 0) return EINVAL;
  if (b.arrivals.load(std::memory_order_acquire) % b.count != 0) return EBUSY;
  // Those whom the last one has let go may still be about to leave.
  while (b.inside.load(std::memory_order_acquire) != 0) strata_sched_yield();
  b.count = 0;
  return 0;
}

int strata_pthread_barrier_wait(pthread_barrier_t* barrier) {
  barrier_state& b = state_of(barrier);
  if (b.count == 0) return EINVAL;
  const kept_errno keep;
  const presence here(b.inside);
  // Acquire-release: what all have done before is visible to all behind it.
  const std::uint64_t before = b.arrivals.fetch_add(1, std::memory_order_acq_rel);
  if ((before + 1) % b.count != 0) {
    wait({b, before / b.count});
    return 0;
  }
  // Those of the next batch that wait already look again.
  if (b.shared == 0) unpark(&b.arrivals, UINT32_MAX);
  return PTHREAD_BARRIER_SERIAL_THREAD;
}
}

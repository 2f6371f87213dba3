// SPDX-License-Identifier: Apache-2.0
// Spin locks and pthread_once().
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "os/clock.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

std::atomic_ref<int> word_of(pthread_spinlock_t* lock) noexcept {
  return std::atomic_ref(const_cast<int&>(*lock));
}
constexpr int spin_free = 0;
constexpr int spin_held = 1;

bool try_spin(std::atomic_ref<int> word) noexcept {
  // Acquire: after whoever unlocked.
  return word.load(std::memory_order_relaxed) == spin_free &&
         word.exchange(spin_held, std::memory_order_acquire) == spin_free;
}

constexpr int once_fresh = PTHREAD_ONCE_INIT;
constexpr int once_done = 2;
// And how often the process was forked: who was in there before is not in the child.
constexpr unsigned once_runs = 1;
constexpr unsigned one_fork = 4;
constinit std::atomic<unsigned> running{once_runs};

int runs_now() noexcept { return static_cast<int>(running.load(std::memory_order_relaxed)); }
bool runs(void* once) {
  return std::atomic_ref(*static_cast<int*>(once)).load(std::memory_order_relaxed) == runs_now();
}

void end_once(pthread_once_t* once, int how) noexcept {
  // Release: what it initialised.
  std::atomic_ref(*once).store(how, std::memory_order_release);
  // One is enough to try again: it looks before it can leave, and whoever was quicker wakes another
  // in its turn.
  unpark(once, how == once_done ? UINT32_MAX : 1);
}

}  // namespace

void forget_running_once() noexcept { running.fetch_add(one_fork, std::memory_order_relaxed); }

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_spin_init(pthread_spinlock_t* lock, int shared) {
  if (shared != PTHREAD_PROCESS_PRIVATE && shared != PTHREAD_PROCESS_SHARED) return EINVAL;
  word_of(lock).store(spin_free, std::memory_order_relaxed);
  return 0;
}

int strata_pthread_spin_destroy(pthread_spinlock_t* lock) {
  return word_of(lock).load(std::memory_order_relaxed) == spin_free ? 0 : EBUSY;
}

int strata_pthread_spin_lock(pthread_spinlock_t* lock) {
  const auto word = word_of(lock);
  for (int i = 0; !try_spin(word); ++i) {
    // The holder may be a thread of this very worker.
    constexpr int patience = 100;
    if (i < patience) {
      strata::os::spin_pause();
    } else {
      const kept_errno keep;
      act_on_signals();  // whose handlers may be what ends this
      strata_sched_yield();
    }
  }
  return 0;
}

int strata_pthread_spin_trylock(pthread_spinlock_t* lock) {
  return try_spin(word_of(lock)) ? 0 : EBUSY;
}

int strata_pthread_spin_unlock(pthread_spinlock_t* lock) {
  word_of(lock).store(spin_free, std::memory_order_release);
  return 0;
}

int strata_pthread_once(pthread_once_t* once, void (*initialise)()) {
  const std::atomic_ref word(*once);
  if (word.load(std::memory_order_acquire) == once_done) return 0;
  const kept_errno keep;
  for (int seen = once_fresh;;) {
    if (word.compare_exchange_strong(seen, runs_now(), std::memory_order_acquire)) break;
    if (seen == once_done) return 0;
    if (seen != runs_now()) continue;  // the one seen: fresh, or somebody's before a fork
    seen = once_fresh;
    park({.what = "pthread_once", .address = once, .still = &runs, .argument = once});
  }
  try {
    initialise();
  } catch (...) {
    // An exception, or the thread was cancelled in there: as if nobody had tried.
    end_once(once, once_fresh);
    throw;
  }
  end_once(once, once_done);
  return 0;
}
}

// SPDX-License-Identifier: Apache-2.0
// C11's threads are POSIX's by other names.
#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>

#include "strata/pthread.h"
#include "strata/threads.h"

namespace strata::detail::posix {
namespace {

// As in the C library.
static_assert(sizeof(thrd_t) == sizeof(pthread_t) && sizeof(tss_t) == sizeof(pthread_key_t) &&
              sizeof(once_flag) == sizeof(pthread_once_t));
static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) &&
              alignof(mtx_t) >= alignof(pthread_mutex_t));
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t) && alignof(cnd_t) >= alignof(pthread_cond_t));

pthread_mutex_t* as_pthread(mtx_t* m) noexcept { return reinterpret_cast<pthread_mutex_t*>(m); }
pthread_cond_t* as_pthread(cnd_t* c) noexcept { return reinterpret_cast<pthread_cond_t*>(c); }

int c11_answer(int error) noexcept {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

void* as_result(int result) noexcept {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(result));
}
int as_int(const void* result) noexcept {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(result));
}

struct c11_start {
  thrd_start_t start;
  void* argument;
};

void* run_c11(void* raw) {
  const c11_start mine = *static_cast<c11_start*>(raw);
  delete static_cast<c11_start*>(raw);
  return as_result(mine.start(mine.argument));
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail::posix;

extern "C" {

int strata_thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  std::unique_ptr<c11_start> mine(new (std::nothrow) c11_start{start, argument});
  if (mine == nullptr) return thrd_nomem;
  const int error = strata_pthread_create(thread, nullptr, &run_c11, mine.get());
  if (error == 0) (void)mine.release();  // it is the thread's
  return c11_answer(error);
}

int strata_thrd_equal(thrd_t a, thrd_t b) { return strata_pthread_equal(a, b); }
thrd_t strata_thrd_current() { return strata_pthread_self(); }

int strata_thrd_sleep(const timespec* time, timespec* left) {
  switch (strata_clock_nanosleep(CLOCK_REALTIME, 0, time, left)) {
    case 0:
      return 0;
    case EINTR:
      return -1;
    default:
      return -2;
  }
}

void strata_thrd_exit(int result) { strata_pthread_exit(as_result(result)); }
int strata_thrd_detach(thrd_t thread) { return c11_answer(strata_pthread_detach(thread)); }

int strata_thrd_join(thrd_t thread, int* result) {
  void* found = nullptr;
  const int error = strata_pthread_join(thread, &found);
  if (error == 0 && result != nullptr) *result = as_int(found);
  return c11_answer(error);
}

void strata_thrd_yield() { (void)strata_sched_yield(); }

int strata_mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  if (const int error = pthread_mutexattr_init(&attributes)) return c11_answer(error);
  if ((type & mtx_recursive) != 0) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = strata_pthread_mutex_init(as_pthread(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return c11_answer(error);
}

int strata_mtx_lock(mtx_t* mutex) {
  return c11_answer(strata_pthread_mutex_lock(as_pthread(mutex)));
}
int strata_mtx_timedlock(mtx_t* mutex, const timespec* until) {
  return c11_answer(strata_pthread_mutex_timedlock(as_pthread(mutex), until));
}
int strata_mtx_trylock(mtx_t* mutex) {
  return c11_answer(strata_pthread_mutex_trylock(as_pthread(mutex)));
}
int strata_mtx_unlock(mtx_t* mutex) {
  return c11_answer(strata_pthread_mutex_unlock(as_pthread(mutex)));
}
void strata_mtx_destroy(mtx_t* mutex) { (void)strata_pthread_mutex_destroy(as_pthread(mutex)); }

void strata_call_once(once_flag* flag, void (*function)()) {
  (void)strata_pthread_once(reinterpret_cast<pthread_once_t*>(flag), function);
}

int strata_cnd_init(cnd_t* condition) {
  return c11_answer(strata_pthread_cond_init(as_pthread(condition), nullptr));
}
int strata_cnd_signal(cnd_t* condition) {
  return c11_answer(strata_pthread_cond_signal(as_pthread(condition)));
}
int strata_cnd_broadcast(cnd_t* condition) {
  return c11_answer(strata_pthread_cond_broadcast(as_pthread(condition)));
}
int strata_cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return c11_answer(strata_pthread_cond_wait(as_pthread(condition), as_pthread(mutex)));
}
int strata_cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return c11_answer(strata_pthread_cond_timedwait(as_pthread(condition), as_pthread(mutex), until));
}
void strata_cnd_destroy(cnd_t* condition) {
  (void)strata_pthread_cond_destroy(as_pthread(condition));
}

int strata_tss_create(tss_t* key, tss_dtor_t destroy) {
  return c11_answer(strata_pthread_key_create(key, destroy));
}
void* strata_tss_get(tss_t key) { return strata_pthread_getspecific(key); }
int strata_tss_set(tss_t key, void* value) {
  return c11_answer(strata_pthread_setspecific(key, value));
}
void strata_tss_delete(tss_t key) { (void)strata_pthread_key_delete(key); }
}

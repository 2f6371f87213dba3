// SPDX-License-Identifier: Apache-2.0
// The folder on the include path, in C++ and in the order that is hard: the standard's headers
// first.
// clang-format off
#include <thread>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
// clang-format on

#include <cerrno>
#include <cstdio>
#include <vector>

namespace {
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t all = PTHREAD_COND_INITIALIZER;
int arrived = 0;
constexpr int count = 50;
void* arrive(void* a) {
  pthread_mutex_lock(&m);
  if (++arrived == count) pthread_cond_broadcast(&all);
  while (arrived < count) pthread_cond_wait(&all, &m);
  pthread_mutex_unlock(&m);
  return a;
}

// What the C library's header has of its own in C++, or under another name.
void* defer(void* a) {
  int before = 0;
  bool deferred = false;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  pthread_cleanup_push_defer_np([](void* done) { *static_cast<bool*>(done) = true; }, a);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
  deferred = before == PTHREAD_CANCEL_DEFERRED;
  pthread_cleanup_pop_restore_np(1);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
  pthread_yield();
  return deferred && before == PTHREAD_CANCEL_ASYNCHRONOUS ? a : nullptr;
}

// C11's beside what C++ has by the same name.
int calls = 0;
int meet_once(void* thread) {
  static std::once_flag of_cxx;
  static once_flag of_c = ONCE_FLAG_INIT;
  std::call_once(of_cxx, [] { ++calls; });
  call_once(&of_c, [] { ++calls; });
  *static_cast<thrd_t*>(thread) = thrd_current();
  return calls;
}
}  // namespace

int main() {
  std::mutex kernels;  // goes on as ever
  const std::lock_guard lock(kernels);
  std::vector<pthread_t> threads(count);
  for (auto& t : threads) {
    if (pthread_create(&t, nullptr, arrive, &t) != 0) return 1;
  }
  for (auto& t : threads) {
    void* result = nullptr;
    if (pthread_join(t, &result) != 0 || result != &t) return 2;
  }
  bool done = false;
  pthread_t t;
  void* result = nullptr;
  if (pthread_create(&t, nullptr, defer, &done) != 0 || pthread_join(t, &result) != 0 ||
      result != &done || !done)
    return 4;
  thrd_t told = 0;
  thrd_t made = 0;
  int called = 0;
  if (thrd_create(&made, meet_once, &told) != thrd_success ||
      thrd_join(made, &called) != thrd_success || called != 2)
    return 6;
  if (told != made || (made >> 63) != 1) return 7;
  if (pthread_mutex_consistent_np(&m) != EINVAL) return 5;
  // Ours: the C library has no thread of that number.
  if ((pthread_self() >> 63) != 1) return 3;
  std::puts("ok");
}

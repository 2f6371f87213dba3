// SPDX-License-Identifier: Apache-2.0
// The folder on the include path, in C++ and in the order that is hard: the standard's headers
// first.
// clang-format off
#include <thread>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
// clang-format on

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
  // Ours: the C library has no thread of that number.
  if ((pthread_self() >> 63) != 1) return 3;
  std::puts("ok");
}

// SPDX-License-Identifier: Apache-2.0
// C++ that is C++98, too. With an argument its threads must be strata's.
#include <pthread.h>
#if defined __GLIBCXX__ && !defined _GLIBCXX_GCC_GTHR_POSIX_H
#error "the C++ library's own calls of pthreads come after the names mean something else"
#endif
#include <errno.h>
#include <semaphore.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {
class guard {
 public:
  explicit guard(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~guard() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t came = PTHREAD_COND_INITIALIZER;
std::vector<std::string> arrived;
bool ours;
bool released;

void* meet(void* a) {
  if (ours && (pthread_self() >> 63) != 1) return NULL;
  guard held(mutex);
  arrived.push_back("one more");
  if (arrived.size() == 2) pthread_cond_broadcast(&came);
  while (arrived.size() < 2) pthread_cond_wait(&came, &mutex);
  return a;
}

void release(void*) { released = true; }
void* leave(void* a) {
  pthread_cleanup_push(release, a);
  pthread_exit(a);
  pthread_cleanup_pop(0);
  return NULL;
}

#ifdef STRATA_PTHREAD_H
void release_it(void* flag) { *static_cast<bool*>(flag) = true; }
bool own_cleanup_runs() {
  bool done = false;
  strata_pthread_cleanup_push(release_it, &done);
  strata_pthread_cleanup_pop(1);
  return done;
}
#else
bool own_cleanup_runs() { return true; }
#endif

bool runs(void* (*start)(void*)) {
  pthread_t threads[2];
  void* result = NULL;
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&threads[i], NULL, start, &threads[i]) != 0) return false;
  for (int i = 0; i < 2; ++i)
    if (pthread_join(threads[i], &result) != 0 || result != &threads[i]) return false;
  return true;
}
}  // namespace

int main(int argc, char**) {
  ours = argc > 1;
  if (!runs(meet)) return 1;
  if (!runs(leave) || !released) return 2;
  if (!own_cleanup_runs()) return 3;
  std::cout << arrived.size() << " met\n";
  return 0;
}

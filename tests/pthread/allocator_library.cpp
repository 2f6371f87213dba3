// SPDX-License-Identifier: Apache-2.0
// An allocator as a library of its own, which does what libjemalloc does: when it is asked for the
// first time it asks who asks, and sets a value of a key; and it has a lock, also over forks.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

// The C library's own.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* before, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* it);
}

namespace {

enum state { not_begun, begins, has_begun };
constinit state now = not_begun;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void lock_all() { pthread_mutex_lock(&mutex); }
void unlock_all() { pthread_mutex_unlock(&mutex); }

// Before there are threads.
void begin() {
  if (now == has_begun) return;
  if (now == begins) _exit(3);  // it is asked for memory by what it asks
  now = begins;
  static volatile pthread_t who = pthread_self();
  (void)who;
  static pthread_key_t key;
  if (pthread_key_create(&key, nullptr) != 0 || pthread_setspecific(key, &key) != 0) _exit(4);
  if (pthread_atfork(&lock_all, &unlock_all, &unlock_all) != 0) _exit(5);
  now = has_begun;
}

class locked {
 public:
  locked() {
    begin();
    lock_all();
    // So long that others want it meanwhile.
    for (int i = 0; i < 20; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~locked() { unlock_all(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
};

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  const locked here;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  const locked here;
  return __libc_calloc(count, bytes);
}
void* realloc(void* before, std::size_t bytes) {
  const locked here;
  return __libc_realloc(before, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  const locked here;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
  *to = memalign(alignment, bytes);
  return 0;
}
// As where an allocator ends a thread of its own: waits with a lock.
void wait_with_a_lock() {
  static pthread_mutex_t slow = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&slow);
  usleep(1000);
  pthread_mutex_unlock(&slow);
}
void free(void* it) {
  if (it == nullptr) return;
  const locked here;
  __libc_free(it);
}
}

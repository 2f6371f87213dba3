// SPDX-License-Identifier: Apache-2.0
#include "os/own_thread.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "strata/detail/cpu.hpp"

namespace strata::os {
namespace {

// Never more than there are: each counts itself.
constinit std::atomic<long> own_threads{0};

}  // namespace

own_thread::own_thread(const char* name) noexcept {
  own_threads.fetch_add(1, std::memory_order_seq_cst);
  pthread_setname_np(pthread_self(), name);
}
own_thread::~own_thread() { own_threads.fetch_sub(1, std::memory_order_seq_cst); }

bool has_other_threads() noexcept {
#if defined(STRATA_TSAN)
  return false;  // ThreadSanitizer has one of its own, always
#else
  // A directory with one for each: that takes no descriptor and no memory.
  constexpr long links_without_threads = 2;
  constexpr long first = 1;
  const int error = errno;
  struct stat about {};
  const long before = own_threads.load(std::memory_order_seq_cst);
  const bool is_told = stat("/proc/self/task", &about) == 0;
  const long after = own_threads.load(std::memory_order_seq_cst);
  errno = error;
  // The smaller one: one of ours that has ended between is in neither.
  return is_told && static_cast<long>(about.st_nlink) - links_without_threads - first >
                        std::min(before, after);
#endif
}

void forget_own_threads() noexcept { own_threads.store(0, std::memory_order_relaxed); }

}  // namespace strata::os

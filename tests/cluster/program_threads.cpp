// SPDX-License-Identifier: Apache-2.0
#include "program_threads.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "tests/common/slow_builds.hpp"

namespace {

constinit std::atomic<int> threads_left{0};  // 0 or less: nobody counts

}  // namespace

void refuse_thread(const char* node, const char* k) {
  const char* const self = std::getenv("STRATA_NODE");
  if (self != nullptr && std::string_view(self) == node) threads_left.store(std::atoi(k));
}

#if !defined(STRATA_TSAN) && !defined(STRATA_ASAN)
// In front of the C library's, also for std::thread.
extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*body)(void*),
                              void* argument) noexcept {
  if (threads_left.load() > 0 && threads_left.fetch_sub(1) == 1) return EAGAIN;
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(made, how, body, argument);
}
#endif

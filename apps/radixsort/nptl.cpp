// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/nptl.hpp"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace radixsort {
namespace {

constexpr std::size_t stack_bytes_min = 64 * 1024;  // vector_loops.cpp needs 17 KiB
constexpr std::size_t stack_bytes_max = 8 * 1024 * 1024;

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

// A stack holds the thread's thread-local variables as well. Nobody says how large they are (with
// ThreadSanitizer: larger than a small stack), so it is tried.
void give_nptl_small_stacks() {
  pthread_attr_t attributes;
  check(pthread_attr_init(&attributes), "pthread_attr_init");
  for (std::size_t bytes = stack_bytes_min; bytes <= stack_bytes_max; bytes *= 2) {
    check(pthread_attr_setstacksize(&attributes, bytes), "pthread_attr_setstacksize");
    check(pthread_setattr_default_np(&attributes), "pthread_setattr_default_np");
    try {
      std::thread([] {}).join();
      break;
    } catch (const std::system_error& e) {
      if (e.code() != std::errc::invalid_argument) throw;
    }
  }
  pthread_attr_destroy(&attributes);
}

unsigned keep_on_processors(unsigned number) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return std::thread::hardware_concurrency();
  cpu_set_t kept;
  CPU_ZERO(&kept);
  unsigned count = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && (number == 0 || count < number); ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &kept);
      ++count;
    }
  }
  check(sched_setaffinity(0, sizeof kept, &kept) == 0 ? 0 : errno, "sched_setaffinity");
  return count;
}

}  // namespace radixsort

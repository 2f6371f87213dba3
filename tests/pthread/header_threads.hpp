// SPDX-License-Identifier: Apache-2.0
// What the tests of strata/pthread.h from C++ share.
#pragma once
#include <strata/pthread.h>

#include <atomic>
#include <strata/runtime.hpp>
#include <strata/thread_specific.hpp>

namespace header_threads {

inline strata::options workers(unsigned n) {
  strata::options o;
  o.workers = n;
  return o;
}

inline void* give_back(void* a) { return a; }

struct flag_at_end {
  std::atomic<int>& count;
  ~flag_at_end() { ++count; }
};
inline std::atomic<int> destroyed;

// Whose end sets one of POSIX's.
inline pthread_key_t set_late;
inline void* set_a_value_of_cxx(void* a) {
  static auto& values = *new strata::thread_specific_ptr<int>(
      [](int*) { strata_pthread_setspecific(set_late, &set_late); });
  values.reset(static_cast<int*>(a));
  return a;
}

}  // namespace header_threads

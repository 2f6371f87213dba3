// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <string>
#include <thread>

#include "bench/common/measure.hpp"

namespace bench {

inline double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What a runtime with nothing to do costs: after some work that started its threads, sleeps, and
// reports the processor seconds that the process used meanwhile, from the end of that work.
template <class Work>
int idle_main(const char* implementation, const arguments& given, Work&& work) {
  const unsigned seconds = given.number(10, 1, 3600);
  work();
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  return print("idle", implementation, std::to_string(seconds), given.workers,
               cpu_seconds() - before, 1, true);
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// What every benchmark program does: read `[--workers W] [parameter...]`, time one computation,
// print one line of JSON. bench/run starts the programs, alternates them and compares.
namespace bench {

struct arguments {
  unsigned workers = 1;
  std::vector<std::string> rest;

  arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--workers") == 0 && i + 1 < argc) {
        workers = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
      } else {
        rest.emplace_back(argv[i]);
      }
    }
    if (workers == 0) refuse("--workers takes a number from 1 on");
  }

  // The first parameter as a number in a range; `otherwise` if there is none.
  unsigned number(unsigned otherwise, unsigned first, unsigned last) const {
    if (rest.empty()) return otherwise;
    char* end = nullptr;
    const unsigned long value = std::strtoul(rest[0].c_str(), &end, 10);
    if (*end != '\0' || value < first || value > last) {
      refuse("the parameter is a number from " + std::to_string(first) + " to " +
             std::to_string(last));
    }
    return static_cast<unsigned>(value);
  }

  [[noreturn]] static void refuse(const std::string& why) {
    std::fprintf(stderr, "bench: %s\n", why.c_str());
    std::exit(2);
  }
};

// Hides from the compiler what it knows about value, so that nothing is computed before the clock
// starts.
template <class T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Computes for that long.
inline void spin_for(double seconds) {
  const double end = seconds_now() + seconds;
  while (seconds_now() < end) {
  }
}

// The upper one of two; 0 of none.
inline double median(std::vector<double> all) {
  if (all.empty()) return 0;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

template <class F>
double seconds_of(F&& work) {
  const double start = seconds_now();
  work();
  return seconds_now() - start;
}

// The most memory this process has held so far. Not from getrusage(): its maximum survives exec()
// and would be that of whoever started the program.
inline double peak_mb() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  double kilobytes = 0;
  for (char line[256]; std::fgets(line, sizeof line, status) != nullptr;) {
    if (std::strncmp(line, "VmHWM:", 6) == 0) kilobytes = std::strtod(line + 6, nullptr);
  }
  std::fclose(status);
  return kilobytes / 1024;
}

// One line on standard output; returns main()'s exit code. units: calls, tasks, nodes or regions
// that were computed.
inline int print(const char* kernel, const char* implementation, const std::string& parameter,
                 unsigned workers, double seconds, double units, bool ok) {
  std::printf(
      "{\"kernel\": \"%s\", \"impl\": \"%s\", \"parameter\": \"%s\", \"workers\": %u, \"seconds\": "
      "%.9f, "
      "\"units\": %.0f, \"peak_mb\": %.1f, \"ok\": %s}\n",
      kernel, implementation, parameter.c_str(), workers, seconds, units, peak_mb(),
      ok ? "true" : "false");
  return ok ? 0 : 1;
}

}  // namespace bench

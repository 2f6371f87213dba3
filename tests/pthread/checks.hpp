// SPDX-License-Identifier: Apache-2.0
// What programs share that know nothing of strata and are run natively and under `strata pthread`:
// checks that count, and parts that run one after the other, or one alone.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace pthread_programs {

inline std::atomic<int> wrong{0};

inline void same_(long got, long wanted, const char* what, int line) {
  if (got != wanted && wrong.fetch_add(1) < 20)
    std::printf("wrong: line %d: %s is %ld, not %ld (errno %d)\n", line, what, got, wanted, errno);
}
#define SAME(a, b) \
  ::pthread_programs::same_(static_cast<long>(a), static_cast<long>(b), #a, __LINE__)

struct part {
  const char* name;
  void (*run)();
};

// All, or the one that the program's first argument names. `how` is said behind its name.
template <class Parts>
void run_parts(const Parts& parts, int argc, char** argv, const char* how = "") {
  for (const part& one : parts) {
    if (argc > 1 && std::strcmp(argv[1], one.name) != 0) continue;
    const int before = wrong;
    one.run();
    std::printf("%s %s%s\n", wrong == before ? "ok" : "not ok", one.name, how);
    std::fflush(stdout);
  }
}

// The program's status, said.
inline int status_of_all() {
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}

}  // namespace pthread_programs

// SPDX-License-Identifier: Apache-2.0
// Jobs that end by a signal.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace strata::test {

// Whether all that the launcher says of nodes is that it has killed them, since they had not ended
// 2 s after a signal.
inline bool says_killed_late(std::string_view err) {
  const std::string_view of_nodes = "strata run: node";
  return err.find("did not end within 2 s of the signal: killed\n") != std::string_view::npos &&
         err.find(of_nodes) == err.rfind(of_nodes);
}

// More wants to run than there are processors.
inline bool machine_is_busy() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 && load > static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
}

// What run() returns, among which `err`. On a busy machine a node may have no processor for as long
// as the launcher waits: then nothing has been seen, and it runs again.
template <class Run>
auto run_in_time(const Run& run) {
  constexpr int runs_max = 20;
  auto result = run();
  for (int runs = 1; runs < runs_max && says_killed_late(result.err) && machine_is_busy(); ++runs) {
    std::fprintf(stderr, "run again on a busy machine: %s", result.err.c_str());
    result = run();
  }
  return result;
}

}  // namespace strata::test

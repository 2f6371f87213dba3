// SPDX-License-Identifier: Apache-2.0
// Jobs that end by a signal.
#pragma once
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

// What run() returns, among which `err`. A machine may stand still for as long as the launcher
// waits: then nothing has been seen, and it runs again.
template <class Run>
auto run_in_time(const Run& run) {
  constexpr int runs_max = 20;
  auto result = run();
  for (int runs = 1; runs < runs_max && says_killed_late(result.err); ++runs) result = run();
  return result;
}

}  // namespace strata::test

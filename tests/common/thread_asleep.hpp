// SPDX-License-Identifier: Apache-2.0
// What the kernel says of an OS thread, of this process or of another one.
#pragma once
#include <unistd.h>

#include <fstream>
#include <string>

namespace strata::test {

// It waits for something.
inline bool sleeps(pid_t thread) {
  const std::string number = std::to_string(thread);
  std::ifstream stat("/proc/" + number + "/task/" + number + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends != std::string::npos && line.compare(name_ends, 3, ") S") == 0;
}

}  // namespace strata::test

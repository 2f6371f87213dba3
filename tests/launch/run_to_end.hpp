// SPDX-License-Identifier: Apache-2.0
// A command of strata, and what it has said when it has ended.
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "command.hpp"

namespace launch_test {

// Runs to the end; more workers than cores is not what these tests are about.
inline result run_to_end(const words& what, const command::setting& how = {}) {
  command c(what, how);
  result r;
  r.status = c.wait();
  r.out = c.out();
  EXPECT_EQ(c.processes_left(), 0);
  std::istringstream lines(c.err());
  for (std::string line; std::getline(lines, line);) {
    if (line.find("expect no speed-up") == std::string::npos) r.err += line + "\n";
  }
  return r;
}

}  // namespace launch_test

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <string>

#include "run_program.hpp"

namespace apps_test {

// A program that runs until it is told to stop: `running server("mapview serve map");`
class running {
 public:
  explicit running(const std::string& line);
  ~running();  // kills it if it still runs
  running(const running&) = delete;
  running& operator=(const running&) = delete;

  // Waits for its next line on standard output; empty at the end.
  std::string line();
  void signal(int number);
  // Waits for its end.
  outcome end();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;  // a pipe
  std::FILE* err_ = nullptr;  // an unnamed file
};

}  // namespace apps_test

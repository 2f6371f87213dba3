// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace apps_test {

// A variable for the programs that are run while this lives.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~variable() { ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

struct outcome {
  int exit_code = -1;  // 128 + signal if one ended it
  std::string out;
  std::string err;
  long peak_kib = 0;  // the most memory it had; not less than what this program had before

  long err_lines() const { return std::count(err.begin(), err.end(), '\n'); }
  std::string last_line() const;
};

// Runs bin/<arguments[0]> with no terminal and an empty standard input; waits for it. stdout_path:
// where its standard output goes instead of into out.
outcome run(std::vector<std::string> arguments, const char* stdout_path = nullptr);

// The same for a command line without quotes: run_line("fib 30 --json").
outcome run_line(const std::string& line);

}  // namespace apps_test

// SPDX-License-Identifier: Apache-2.0
// What main() does with what the user can put right.
#include <cstdio>
#include <cstdlib>

#include "base/one_line.hpp"
#include "strata/error.hpp"
#include "strata/launched.hpp"
#include "strata/options.hpp"
#include "strata/runtime.hpp"

namespace strata {
namespace {

constexpr int exit_bad_input = 2;

[[noreturn]] void exit_saying(const user_error& problem) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, one_line(problem.what()).c_str());
  std::exit(exit_bad_input);
}

}  // namespace

options options::parse_or_exit(int& argc, char** argv) {
  try {
    return parse(argc, argv);
  } catch (const user_error& problem) {
    // All nodes of a job read the same.
    if (launched_node().value_or(0) != 0) std::exit(exit_bad_input);
    exit_saying(problem);
  }
}

runtime::runtime(int& argc, char** argv) try : runtime(options::parse_or_exit(argc, argv)) {
} catch (const user_error& problem) {
  exit_saying(problem);
}

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// The programs whose speed-up can be predicted, as tokens.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace strata::predict {

struct program {
  std::string name;  // "fib 25"
  // Sends the first token; *done becomes true when the result is there and right. Inside a runtime
  // or as a simulated worker.
  std::function<void(bool* done)> begin;
};

// "fib N", "nqueens N", "uts NAME". Throws user_error.
program find_program(const std::string& kind, const std::string& size);

}  // namespace strata::predict

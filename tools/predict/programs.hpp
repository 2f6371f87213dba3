// SPDX-License-Identifier: Apache-2.0
// The programs whose speed-up can be predicted, as tokens.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "apps/uts/tree.hpp"

namespace strata::predict {

enum class result : std::uint8_t { awaited, right, wrong };

struct program {
  std::string name;  // "fib 25"
  // Sends the first token; *found tells how the program's result compares with the known one when
  // it is there. Inside a runtime or as a simulated worker.
  std::function<void(result* found)> begin;
};

// "fib N", "nqueens N", "uts NAME". Throws user_error.
program find_program(const std::string& kind, const std::string& size);

// What find_program() makes of them, when the result is to be `known`.
program fib_program(unsigned n, std::uint64_t known);
program nqueens_program(unsigned n, std::uint64_t known);
program uts_program(const std::string& name, const uts::parameters& tree, const uts::tally& known);

}  // namespace strata::predict

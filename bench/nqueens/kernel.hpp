// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "apps/nqueens/board.hpp"
#include "bench/common/measure.hpp"

namespace bench {

// Safe placements including the empty board: the tasks of an unthrottled search.
inline double nqueens_tasks(unsigned n) {
  constexpr std::array<double, 14> table = {1,   2,    3,    6,     17,     54,     153,
                                            552, 2057, 8394, 35539, 166926, 856189, 4674890};
  return table[n];
}

template <class Environment>
int nqueens_main(int argc, char** argv, const char* implementation,
                 std::uint64_t (*compute)(unsigned)) {
  const arguments given(argc, argv);
  const unsigned n = given.number(13, 1, 13);
  Environment environment(given.workers);
  environment.run([&] { compute(opaque(6U)); });
  std::uint64_t solutions = 0;
  const double seconds =
      seconds_of([&] { environment.run([&] { solutions = compute(opaque(n)); }); });
  return print("nqueens", implementation, std::to_string(n), given.workers, seconds,
               nqueens_tasks(n), solutions == nqueens::known_solutions(n));
}

}  // namespace bench

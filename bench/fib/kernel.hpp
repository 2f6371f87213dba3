// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "apps/fib/serial.hpp"
#include "bench/common/measure.hpp"

namespace bench {

// compute(n) is called inside the environment; a small run before the measured one starts the
// threads.
template <class Environment>
int fib_main(int argc, char** argv, const char* implementation,
             std::uint64_t (*compute)(unsigned)) {
  const arguments given(argc, argv);
  const unsigned n = given.number(38, 2, 50);
  Environment environment(given.workers);
  environment.run([&] { compute(opaque(15U)); });
  std::uint64_t value = 0;
  const double seconds = seconds_of([&] { environment.run([&] { value = compute(opaque(n)); }); });
  return print("fib", implementation, std::to_string(n), given.workers, seconds, fib::calls(n),
               value == fib::closed_form(n));
}

}  // namespace bench

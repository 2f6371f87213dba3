// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/measure.hpp"

// Two contexts that switch to each other; with `inexact` each also does one inexact floating-point
// operation on one side only, which is what programs do and what makes a reload of MXCSR slow.
namespace bench {

inline double inexact_operation(double x) {
  asm volatile("" : "+m"(x));
  x = x / 3.0 + 1.0;
  asm volatile("" : "+m"(x));
  return x;
}

template <class Switches>
int switch_main(int argc, char** argv, const char* implementation, Switches&& switches) {
  const arguments given(argc, argv);
  const bool inexact = given.rest.size() == 1 && given.rest[0] == "inexact";
  constexpr long count = 20'000'000;
  switches(1000, inexact);
  const double seconds = seconds_of([&] { switches(count, inexact); });
  return print("context_switch", implementation, inexact ? "inexact" : "plain", 1, seconds,
               static_cast<double>(count), true);
}

}  // namespace bench

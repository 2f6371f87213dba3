// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The Fibonacci numbers by the definition, two calls per call: a program that does nothing but
// call. What a runtime adds to a call is all there is to see, which is why everybody measures it.
namespace fib {

// fib(93) is the largest that fits 64 bits.
inline constexpr unsigned n_max = 93;

// Not inlined into itself: g++ would otherwise unroll the recursion several levels deep and what
// remains to be compared is no longer a call (bench/fib/serial_unrolled.cpp measures that too).
[[gnu::noinline]] inline std::uint64_t serial(unsigned n) {
  return n < 2 ? n : serial(n - 1) + serial(n - 2);
}

// The same value in n additions: what the slow ways are checked against.
constexpr std::uint64_t closed_form(unsigned n) {
  std::uint64_t a = 0;
  std::uint64_t b = 1;
  for (unsigned i = 0; i < n; ++i) {
    const std::uint64_t next = a + b;
    a = b;
    b = next;
  }
  return a;
}
static_assert(closed_form(0) == 0 && closed_form(1) == 1 && closed_form(38) == 39088169);
static_assert(closed_form(n_max) == 12200160415121876738U);

// Calls made by each of the slow ways: 2 fib(n+1) - 1. A double, because it outgrows 64 bits before
// the result does.
inline double calls(unsigned n) {
  return 2 * (static_cast<double>(closed_form(n)) +
              (n == 0 ? 1.0 : static_cast<double>(closed_form(n - 1)))) -
         1;
}

}  // namespace fib

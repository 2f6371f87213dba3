// SPDX-License-Identifier: Apache-2.0
// The same recursion when the compiler may inline it into itself: g++ leaves one call for several.
#include "bench/common/serial.hpp"
#include "bench/fib/kernel.hpp"

namespace {
std::uint64_t unrolled(unsigned n) { return n < 2 ? n : unrolled(n - 1) + unrolled(n - 2); }
}  // namespace

int main(int argc, char** argv) {
  return bench::fib_main<bench::serial_environment>(argc, argv, "serial_unrolled", unrolled);
}

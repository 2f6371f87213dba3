// SPDX-License-Identifier: Apache-2.0
#include "bench/common/serial.hpp"

#include "bench/fib/kernel.hpp"

int main(int argc, char** argv) {
  return bench::fib_main<bench::serial_environment>(argc, argv, "serial", fib::serial);
}

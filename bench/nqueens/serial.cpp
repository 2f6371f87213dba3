// SPDX-License-Identifier: Apache-2.0
#include "bench/common/serial.hpp"

#include "bench/nqueens/kernel.hpp"

int main(int argc, char** argv) {
  return bench::nqueens_main<bench::serial_environment>(
      argc, argv, "serial", [](unsigned n) { return nqueens::serial(n); });
}

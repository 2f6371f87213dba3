// SPDX-License-Identifier: Apache-2.0
#include "bench/common/serial.hpp"

#include "bench/uts/kernel.hpp"

int main(int argc, char** argv) {
  return bench::uts_main<bench::serial_environment>(
      argc, argv, "serial", [](const uts::parameters& tree) { return uts::serial(tree); });
}

// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "bench/context_switch/kernel.hpp"
#include "context/switch.hpp"

namespace {

void* here;
void* there;

void other_side(void*) {
  for (;;) strata::detail::strata_switch_context(&there, here);
}

void switches(long count, bool inexact) {
  double x = 1;
  for (long i = 0; i < count; i += 2) {
    if (inexact) x = bench::inexact_operation(x);
    strata::detail::strata_switch_context(&here, there);
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t bytes = 64 * 1024;
  const auto stack = std::make_unique<char[]>(bytes);
  there = strata::detail::make_context(stack.get() + bytes, &other_side, nullptr);
  return bench::switch_main(argc, argv, "strata", switches);
}

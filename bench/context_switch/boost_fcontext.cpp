// SPDX-License-Identifier: Apache-2.0
#include <boost/context/detail/fcontext.hpp>
#include <memory>

#include "bench/context_switch/kernel.hpp"

namespace {

using namespace boost::context::detail;

fcontext_t there;

void other_side(transfer_t from) {
  for (;;) from = jump_fcontext(from.fctx, nullptr);
}

void switches(long count, bool inexact) {
  double x = 1;
  for (long i = 0; i < count; i += 2) {
    if (inexact) x = bench::inexact_operation(x);
    there = jump_fcontext(there, nullptr).fctx;
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t bytes = 64 * 1024;
  const auto stack = std::make_unique<char[]>(bytes);
  there = make_fcontext(stack.get() + bytes, bytes, &other_side);
  return bench::switch_main(argc, argv, "boost_fcontext", switches);
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <strata/fiber.hpp>

namespace fib {

// Figure 1 of the EARTH paper (Theobald et al., "Overview of the Threaded-C language"), with the
// usual base case fib(0) = 0: a token for every call, a sync slot of two for every sum. Call inside
// a runtime.
struct activation : strata::threaded {
  unsigned n;
  strata::global_ptr<std::uint64_t> result;
  strata::slot_ptr done;
  std::uint64_t r1;
  std::uint64_t r2;

  // Without it r1 and r2 begin as zero, for which g++ clears the whole frame: a fifth of the time.
  activation(unsigned of, strata::global_ptr<std::uint64_t> to, strata::slot_ptr then)
      : n(of), result(to), done(then) {}

  void start() {
    using namespace strata;
    if (n < 2) {
      put_sync(std::uint64_t{n}, result, done);
      terminate();
    } else {
      token<activation>(n - 1, to_global(&r1), to_sptr(READY));
      token<activation>(n - 2, to_global(&r2), to_sptr(READY));
    }
  }
  void ready() {
    strata::put_sync(r1 + r2, result, done);
    terminate();
  }
  strata::fiber<&activation::ready> READY{this, 2};
};

inline std::uint64_t fibers(unsigned n) {
  std::uint64_t value = 0;
  strata::completion done{1};
  strata::token<activation>(n, strata::to_global(&value), done.sptr());
  done.wait();
  return value;
}

}  // namespace fib

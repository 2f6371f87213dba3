// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

namespace strata::os {

namespace {

struct moment {
  std::int64_t ns;
  std::uint64_t ticks;
};

// The counter is read on both sides of the clock: the nanoseconds belong to the middle. Of a few
// readings the tightest pair is taken, because an interrupt may fall between the two.
moment tight_moment() {
  moment best{};
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = ticks();
    const std::int64_t ns = now_ns();
    const std::uint64_t width = ticks() - before;
    if (width < best_width) {
      best_width = width;
      best = {ns, before + width / 2};
    }
  }
  return best;
}

const moment& first_moment() {
  static const moment first = tight_moment();
  return first;
}

// Taken when the program loads, so that the measured span is long before anybody asks.
[[maybe_unused]] const moment& at_load = first_moment();

double measure() {
  constexpr std::int64_t span_ns_min = 2'000'000;
  const moment first = first_moment();
  while (now_ns() - first.ns < span_ns_min) spin_pause();
  const moment last = tight_moment();
  return static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
}

}  // namespace

double ns_per_tick() {
  static const double ratio = measure();
  return ratio;
}

}  // namespace strata::os

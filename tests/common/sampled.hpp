// SPDX-License-Identifier: Apache-2.0
// How much of what all other builds test in full a sanitizer repeats.
#pragma once
#include "slow_builds.hpp"

namespace strata::test {

// For repetitions and sizes of what only computes, or comes by chance: a sanitizer's checks are the
// same each time.
template <class T>
constexpr T sampled(T all, T sample) {
  return thread_sanitizer || address_sanitizer ? sample : all;
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/radixsort/digits.hpp"

namespace radixsort {

// digit_loops::move for digits of so many bits by vector instructions; null where they are not the
// faster way, or this processor has none.
using move_loop = decltype(digit_loops::move);
move_loop vector_move(unsigned radix_bits) noexcept;

}  // namespace radixsort

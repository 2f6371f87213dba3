// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/radixsort/digits.hpp"

namespace radixsort {

// Those of the loops for digits of so many bits that vector instructions of this processor make
// faster; null: none do.
digit_loops vector_loops(unsigned radix_bits) noexcept;

}  // namespace radixsort

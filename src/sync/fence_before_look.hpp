// SPDX-License-Identifier: Apache-2.0
// Of two parties that each do something and then look for what the other has done, the frequent
// one's part: also where membarrier is refused, when it has to pay as well.
#pragma once
#include "strata/detail/fences.hpp"

namespace strata::detail {

// What the caller did before, then its look. Partner: a heavy fence, between what the other did and
// its own look.
template <class Fences = asymmetric_fences>
void fence_before_look() noexcept {
  Fences::light();
  if (!Fences::available()) [[unlikely]]
    Fences::full();
}

}  // namespace strata::detail

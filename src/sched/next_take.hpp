// SPDX-License-Identifier: Apache-2.0
// Where another node of this host will be robbed next: its lines are fetched as soon as a search
// begins, both at the same time, instead of one after the other when each is wanted.
#pragma once
#include "strata/detail/cpu.hpp"

namespace strata::detail {

// What a take changes and what it reads, if it takes where the last one did. The memory may be gone
// meanwhile: fetching never fails.
struct next_take {
  const void* word = nullptr;
  const void* place = nullptr;

  // Once: who looks again and again would keep the word away from those who put something there.
  void fetch() noexcept {
    if (word == nullptr) return;
    prefetch_to_write(word);
    prefetch(place);
    prefetch(static_cast<const char*>(place) + line_bytes);
    word = nullptr;
  }
};

}  // namespace strata::detail

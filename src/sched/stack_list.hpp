// SPDX-License-Identifier: Apache-2.0
// Stacks in a row, linked by what lies in them: who has to be woken can be listed, and handed on,
// where there is no memory. Each is in one list at most, or in a queue, or runs.
#pragma once
#include <cstddef>

#include "context/stack.hpp"
#include "strata/detail/cpu.hpp"

namespace strata::detail {

struct stack_list {
  stack* first = nullptr;
  stack* last = nullptr;
  std::size_t count = 0;

  [[nodiscard]] bool empty() const noexcept { return first == nullptr; }
  void append(stack& s) noexcept {
    s.next_free = nullptr;
    (last != nullptr ? last->next_free : first) = &s;
    last = &s;
    ++count;
  }
  // Those in front of it stay.
  void remove_last(stack* before) noexcept {
    (before != nullptr ? before->next_free : first) = nullptr;
    last = before;
    --count;
  }
  // Null: it is empty.
  stack* take_first() noexcept {
    stack* const s = first;
    if (s == nullptr) return nullptr;
    first = s->next_free;
    if (first == nullptr) last = nullptr;
    --count;
    return s;
  }
};

// Those that have waited for the same on one worker.
struct alignas(destructive_bytes) listed_stacks {
  stack_list free;
  stack_list pinned;
};

}  // namespace strata::detail

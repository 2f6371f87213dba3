// SPDX-License-Identifier: Apache-2.0
// Comparisons with what an atomic word holds now: a relaxed load, compared. GCC and clang load the
// word and compare then; x86-64 needs one instruction, that compares with memory, and the branch
// behind it. A fork makes four such comparisons among 55 instructions, and is as fast as the
// processor takes in instructions. The true case goes straight on.
#pragma once
#include <atomic>
#include <type_traits>

#include "strata/detail/cpu.hpp"

// The sanitizers cannot see into assembly.
#if defined(__x86_64__) && !defined(STRATA_TSAN) && !defined(STRATA_ASAN)
#define STRATA_COMPARE_NOW(jump_if_not, value, word)                                       \
  static_assert(sizeof(word) == 8 && sizeof(value) == 8);                                  \
  asm goto("cmpq %0, %1\n\t" jump_if_not " %l[no]" : : "m"(word), "r"(value) : "cc" : no); \
  return true;                                                                             \
  no:                                                                                      \
  return false
#endif

namespace strata::detail {

// value == word. `Word` is the atomic of a model, or one that is watched.
template <class V, class Word>
[[gnu::always_inline]] inline bool equal_now(V value, const Word& word) noexcept {
  return value == word.load(std::memory_order_relaxed);
}
// value < word
template <class V, class Word>
[[gnu::always_inline]] inline bool below_now(V value, const Word& word) noexcept {
  return value < word.load(std::memory_order_relaxed);
}
// value >= word
template <class V, class Word>
[[gnu::always_inline]] inline bool at_least_now(V value, const Word& word) noexcept {
  return value >= word.load(std::memory_order_relaxed);
}

#ifdef STRATA_COMPARE_NOW
template <class V, class T>
[[gnu::always_inline]] inline bool equal_now(V value, const std::atomic<T>& word) noexcept {
  STRATA_COMPARE_NOW("jne", value, word);
}
template <class T>
[[gnu::always_inline]] inline bool below_now(T value, const std::atomic<T>& word) noexcept {
  static_assert(std::is_unsigned_v<T>);
  STRATA_COMPARE_NOW("jae", value, word);
}
template <class T>
[[gnu::always_inline]] inline bool at_least_now(T value, const std::atomic<T>& word) noexcept {
  static_assert(std::is_unsigned_v<T>);
  STRATA_COMPARE_NOW("jb", value, word);
}
#undef STRATA_COMPARE_NOW
#endif

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// Comparisons with what an atomic word holds now: a relaxed load, compared. GCC and clang load the
// word and compare then; x86-64 needs one instruction, that compares with memory, and the branch
// behind it. A fork makes four such comparisons among 55 instructions, and is as fast as the
// processor takes in instructions. The true case goes straight on.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "strata/detail/cpu.hpp"

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

// The sanitizers cannot see into assembly.
#if defined(__x86_64__) && !defined(STRATA_TSAN) && !defined(STRATA_ASAN)
// No templates: clang 14 to 16 crash where an `asm goto` of one comes from a precompiled header.
using any_word [[gnu::may_alias]] = std::uint64_t;
#define STRATA_COMPARE_NOW(name, jump_if_not)                                                   \
  [[gnu::always_inline]] inline bool name(std::uint64_t value, const any_word& word) noexcept { \
    asm goto("cmpq %0, %1\n\t" jump_if_not " %l[no]" : : "m"(word), "r"(value) : "cc" : no);    \
    return true;                                                                                \
  no:                                                                                           \
    return false;                                                                               \
  }
STRATA_COMPARE_NOW(equal_word_now, "jne")
STRATA_COMPARE_NOW(below_word_now, "jae")
STRATA_COMPARE_NOW(at_least_word_now, "jb")
#undef STRATA_COMPARE_NOW

template <class T>
[[gnu::always_inline]] inline const any_word& word_of(const std::atomic<T>& word) noexcept {
  static_assert(sizeof(word) == sizeof(any_word) && alignof(std::atomic<T>) == alignof(any_word));
  return reinterpret_cast<const any_word&>(word);
}
template <class V, class T>
[[gnu::always_inline]] inline bool equal_now(V value, const std::atomic<T>& word) noexcept {
  return equal_word_now(std::bit_cast<std::uint64_t>(value), word_of(word));
}
template <class T>
[[gnu::always_inline]] inline bool below_now(T value, const std::atomic<T>& word) noexcept {
  static_assert(std::is_unsigned_v<T>);
  return below_word_now(value, word_of(word));
}
template <class T>
[[gnu::always_inline]] inline bool at_least_now(T value, const std::atomic<T>& word) noexcept {
  static_assert(std::is_unsigned_v<T>);
  return at_least_word_now(value, word_of(word));
}
#endif

}  // namespace strata::detail

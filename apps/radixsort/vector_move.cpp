// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/vector_move.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace radixsort {

#if defined(__x86_64__)

namespace {

constexpr std::size_t lanes = 8;

// Of every set of lanes, their numbers in order: what brings them together at the front.
constexpr auto together = [] {
  std::array<std::array<std::uint8_t, lanes>, std::size_t{1} << lanes> all{};
  for (std::size_t set = 0; set < all.size(); ++set) {
    std::size_t count = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if ((set >> lane & 1) != 0) all[set][count++] = static_cast<std::uint8_t>(lane);
    }
  }
  return all;
}();

// Eight keys at a time: for each digit those that have it are brought together and written to the
// end of its list, whose length then grows by their number. No branch, and no address that waits
// for memory. What is written behind the end is a neighbour's place, so the lists are kept here for
// a while first. The work grows with the number of digits: with three bits it is no gain any more.
template <unsigned Bits>
__attribute__((target("avx2,popcnt"))) void move(std::span<const key> keys, unsigned shift,
                                                 const position* first, key* to) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t piece = 1024 / radix;  // of a page altogether
  std::array<std::array<key, piece + lanes>, radix> lists;
  std::array<key*, radix> ends;
  for (std::size_t d = 0; d < radix; ++d) ends[d] = to + first[d];
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m256i all_bits = _mm256_set1_epi32(radix - 1);
  while (!keys.empty()) {
    const std::span<const key> now = keys.first(std::min(piece, keys.size()));
    std::array<std::size_t, radix> lengths{};
    std::size_t i = 0;
    for (; i + lanes <= now.size(); i += lanes) {
      const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&now[i]));
      const __m256i digits = _mm256_and_si256(_mm256_srl_epi32(k, by), all_bits);
      for (std::size_t d = 0; d < radix; ++d) {
        const __m256i has = _mm256_cmpeq_epi32(digits, _mm256_set1_epi32(static_cast<int>(d)));
        const auto set = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(has)));
        const __m256i order = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(together[set].data())));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&lists[d][lengths[d]]),
                            _mm256_permutevar8x32_epi32(k, order));
        lengths[d] += static_cast<unsigned>(std::popcount(set));
      }
    }
    for (; i < now.size(); ++i) {
      const std::size_t d = (now[i] >> shift) & (radix - 1);
      lists[d][lengths[d]++] = now[i];
    }
    for (std::size_t d = 0; d < radix; ++d)
      ends[d] = std::copy_n(lists[d].begin(), lengths[d], ends[d]);
    keys = keys.subspan(now.size());
  }
}

}  // namespace

move_loop vector_move(unsigned radix_bits) noexcept {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("popcnt")) return nullptr;
  return radix_bits == 1 ? &move<1> : radix_bits == 2 ? &move<2> : nullptr;
}

#else

move_loop vector_move(unsigned) noexcept { return nullptr; }

#endif

}  // namespace radixsort

// SPDX-License-Identifier: Apache-2.0
#include "apps/radixsort/vector_loops.hpp"

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

// ---- moving ----
//
// Some keys at a time: for each digit those that have it are brought together and written to the
// end of its list, whose length then grows by their number. No branch, and no address that waits
// for memory. What is written behind the end is a neighbour's place, so the lists are kept here for
// a while first. The work grows with the number of digits.

template <std::size_t Radix, std::size_t Room>
using lists_of = std::array<std::array<key, Room>, Radix>;
template <std::size_t Radix>
using lengths_of = std::array<std::size_t, Radix>;
template <std::size_t Radix>
using ends_of = std::array<key*, Radix>;

template <std::size_t Radix>
ends_of<Radix> ends_at(const position* first, key* to) noexcept {
  ends_of<Radix> ends;
  for (std::size_t d = 0; d < Radix; ++d) ends[d] = to + first[d];
  return ends;
}

// The keys that are fewer than lanes; then all that was kept goes where it belongs.
template <std::size_t Radix, std::size_t Room>
void end_piece(std::span<const key> rest, unsigned shift, lists_of<Radix, Room>& lists,
               lengths_of<Radix>& lengths, ends_of<Radix>& ends) noexcept {
  for (const key k : rest) {
    const std::size_t d = (k >> shift) & (Radix - 1);
    lists[d][lengths[d]++] = k;
  }
  for (std::size_t d = 0; d < Radix; ++d)
    ends[d] = std::copy_n(lists[d].begin(), lengths[d], ends[d]);
}

// Of every set of eight lanes, their numbers in order: what brings them together at the front.
constexpr auto together = [] {
  std::array<std::array<std::uint8_t, 8>, 256> all{};
  for (std::size_t set = 0; set < all.size(); ++set) {
    std::size_t count = 0;
    for (std::size_t lane = 0; lane < 8; ++lane) {
      if ((set >> lane & 1) != 0) all[set][count++] = static_cast<std::uint8_t>(lane);
    }
  }
  return all;
}();

template <unsigned Bits>
__attribute__((target("avx2,popcnt"))) void move_by_8(std::span<const key> keys, unsigned shift,
                                                      const position* first, key* to) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t lanes = 8, piece = 1024 / radix;  // of a page altogether
  lists_of<radix, piece + lanes> lists;
  ends_of<radix> ends = ends_at<radix>(first, to);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m256i all_bits = _mm256_set1_epi32(radix - 1);
  while (!keys.empty()) {
    const std::span<const key> now = keys.first(std::min(piece, keys.size()));
    lengths_of<radix> lengths{};
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
    end_piece<radix>(now.subspan(i), shift, lists, lengths, ends);
    keys = keys.subspan(now.size());
  }
}

// The processor brings them together itself.
template <unsigned Bits>
__attribute__((target("avx512f,popcnt"))) void move_by_16(std::span<const key> keys, unsigned shift,
                                                          const position* first, key* to) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t lanes = 16, piece = 2048 / radix;
  lists_of<radix, piece + lanes> lists;
  ends_of<radix> ends = ends_at<radix>(first, to);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m512i all_bits = _mm512_set1_epi32(radix - 1);
  constexpr __mmask16 all_lanes = 0xffff;  // without a mask GCC 12 warns of its own header
  while (!keys.empty()) {
    const std::span<const key> now = keys.first(std::min(piece, keys.size()));
    lengths_of<radix> lengths{};
    std::size_t i = 0;
    for (; i + lanes <= now.size(); i += lanes) {
      const __m512i k = _mm512_loadu_si512(&now[i]);
      const __m512i digits = _mm512_and_si512(_mm512_maskz_srl_epi32(all_lanes, k, by), all_bits);
      for (std::size_t d = 0; d < radix; ++d) {
        const __mmask16 set =
            _mm512_cmpeq_epi32_mask(digits, _mm512_set1_epi32(static_cast<int>(d)));
        _mm512_storeu_si512(&lists[d][lengths[d]], _mm512_maskz_compress_epi32(set, k));
        lengths[d] += static_cast<unsigned>(std::popcount(static_cast<unsigned>(set)));
      }
    }
    end_piece<radix>(now.subspan(i), shift, lists, lengths, ends);
    keys = keys.subspan(now.size());
  }
}

// ---- counting ----

// For each digit eight counts, which grow by one where a lane has it.
template <unsigned Bits>
__attribute__((target("avx2"))) void count_by_8(std::span<const key> keys, unsigned shift,
                                                position* counts) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t lanes = 8;
  __m256i seen[radix];  // no template takes this type with all that it means
  for (__m256i& s : seen) s = _mm256_setzero_si256();
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m256i all_bits = _mm256_set1_epi32(radix - 1);
  std::size_t i = 0;
  for (; i + lanes <= keys.size(); i += lanes) {
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&keys[i]));
    const __m256i digits = _mm256_and_si256(_mm256_srl_epi32(k, by), all_bits);
    for (std::size_t d = 0; d < radix; ++d) {
      const __m256i has = _mm256_cmpeq_epi32(digits, _mm256_set1_epi32(static_cast<int>(d)));
      seen[d] = _mm256_sub_epi32(seen[d], has);  // -1 where it is true
    }
  }
  for (std::size_t d = 0; d < radix; ++d) {
    std::array<position, lanes> by_lane;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(by_lane.data()), seen[d]);
    counts[d] = 0;
    for (const position p : by_lane) counts[d] += p;
  }
  for (; i < keys.size(); ++i) ++counts[(keys[i] >> shift) & (radix - 1)];
}

}  // namespace

digit_loops vector_loops(unsigned radix_bits) noexcept {
  if (!__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("avx2")) return {};
  switch (radix_bits) {
    case 1:
      return {nullptr, &move_by_8<1>};
    case 2:
      return {nullptr, &move_by_8<2>};
    case 3:
      return {&count_by_8<3>, __builtin_cpu_supports("avx512f") ? &move_by_16<3> : nullptr};
    default:
      return {};
  }
}

#else

digit_loops vector_loops(unsigned) noexcept { return {}; }

#endif

}  // namespace radixsort

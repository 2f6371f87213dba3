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

__attribute__((target("avx2"))) inline __m256i digits_of_8(const key* from, __m128i shift,
                                                           __m256i all_bits) {
  const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm256_and_si256(_mm256_srl_epi32(k, shift), all_bits);
}

// The keys of one piece to the ends of empty lists, but for the last that are fewer than lanes.
// Returns the lists' lengths.
struct by_8 {
  static constexpr std::size_t lanes = 8;

  template <std::size_t Radix, std::size_t Room>
  __attribute__((target("avx2,popcnt"))) static lengths_of<Radix> collect(
      std::span<const key> keys, unsigned shift, lists_of<Radix, Room>& lists) noexcept {
    const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
    const __m256i all_bits = _mm256_set1_epi32(Radix - 1);
    lengths_of<Radix> lengths{};
    for (std::size_t i = 0; i + lanes <= keys.size(); i += lanes) {
      const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&keys[i]));
      const __m256i digits = digits_of_8(&keys[i], by, all_bits);
      for (std::size_t d = 0; d < Radix; ++d) {
        const __m256i has = _mm256_cmpeq_epi32(digits, _mm256_set1_epi32(static_cast<int>(d)));
        const auto set = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(has)));
        const __m256i order = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(together[set].data())));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&lists[d][lengths[d]]),
                            _mm256_permutevar8x32_epi32(k, order));
        lengths[d] += static_cast<unsigned>(std::popcount(set));
      }
    }
    return lengths;
  }
};

// The processor brings them together itself.
struct by_16 {
  static constexpr std::size_t lanes = 16;

  template <std::size_t Radix, std::size_t Room>
  __attribute__((target("avx512f,popcnt"))) static lengths_of<Radix> collect(
      std::span<const key> keys, unsigned shift, lists_of<Radix, Room>& lists) noexcept {
    const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
    const __m512i all_bits = _mm512_set1_epi32(Radix - 1);
    constexpr __mmask16 all_lanes = 0xffff;  // without a mask GCC 12 warns of its own header
    lengths_of<Radix> lengths{};
    for (std::size_t i = 0; i + lanes <= keys.size(); i += lanes) {
      const __m512i k = _mm512_loadu_si512(&keys[i]);
      const __m512i digits = _mm512_and_si512(_mm512_maskz_srl_epi32(all_lanes, k, by), all_bits);
      for (std::size_t d = 0; d < Radix; ++d) {
        const __mmask16 set =
            _mm512_cmpeq_epi32_mask(digits, _mm512_set1_epi32(static_cast<int>(d)));
        _mm512_storeu_si512(&lists[d][lengths[d]], _mm512_maskz_compress_epi32(set, k));
        lengths[d] += static_cast<unsigned>(std::popcount(static_cast<unsigned>(set)));
      }
    }
    return lengths;
  }
};

template <class Set, unsigned Bits>
void move(std::span<const key> keys, unsigned shift, const position* first, key* to) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t piece = 512;  // with 128 or 256 keys three bits take a sixth longer
  constexpr std::size_t lines_each = piece / radix / line_keys + 1;
  lists_of<radix, piece + Set::lanes> lists;
  std::array<key*, radix> ends;
  for (std::size_t d = 0; d < radix; ++d) ends[d] = to + first[d];
  while (!keys.empty()) {
    const std::span<const key> now = keys.first(std::min(piece, keys.size()));
    lengths_of<radix> lengths = Set::template collect<radix>(now, shift, lists);
    for (const key k : now.last(now.size() % Set::lanes)) {
      const std::size_t d = (k >> shift) & (radix - 1);
      lists[d][lengths[d]++] = k;
    }
    for (std::size_t d = 0; d < radix; ++d) {
      ends[d] = std::copy_n(lists[d].begin(), lengths[d], ends[d]);
      // What comes next is written there; until then its lines can be fetched, to write to. Behind
      // the last list it is an address that nobody has, which is allowed.
      for (std::size_t line = 0; line < lines_each; ++line)
        __builtin_prefetch(ends[d] + line * line_keys, 1);
    }
    keys = keys.subspan(now.size());
  }
}

// ---- counting ----

// Eight digits have four bits each of a lane. What a key adds to its lane comes out of a table of
// eight, for which the processor looks only at the lowest three bits of what the key is shifted to.
// Of sixteen digits those from the ninth on have lanes of their own, and the fourth bit says whose.
// Before four bits are full they are added to eight, and before these are full to the counts.
template <unsigned Bits>
__attribute__((target("avx2"))) void count_by_8(std::span<const key> keys, unsigned shift,
                                                position* counts) noexcept {
  constexpr std::size_t radix = std::size_t{1} << Bits;
  constexpr std::size_t lanes = 8;
  constexpr std::size_t halves = radix > 8 ? 2 : 1;
  constexpr std::size_t four_bits_hold = 15;
  constexpr std::size_t eight_bits_hold = 255;

  const auto one = [](unsigned digit) { return static_cast<int>(1U << (4 * (digit % radix))); };
  const __m256i ones =
      _mm256_setr_epi32(one(0), one(1), one(2), one(3), one(4), one(5), one(6), one(7));
  const __m256i low_halves = _mm256_set1_epi8(0x0f);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m128i fourth_to_sign = _mm_cvtsi32_si128(static_cast<int>(28 - shift));

  std::fill(counts, counts + radix, 0);
  while (keys.size() >= lanes) {
    __m256i even[halves];  // no template takes this type with all that it means
    __m256i odd[halves];
    for (std::size_t h = 0; h < halves; ++h) even[h] = odd[h] = _mm256_setzero_si256();
    for (std::size_t r = 0; r < eight_bits_hold / four_bits_hold && keys.size() >= lanes; ++r) {
      const std::size_t steps = std::min(four_bits_hold, keys.size() / lanes);
      __m256i seen[halves];
      for (__m256i& s : seen) s = _mm256_setzero_si256();
      for (std::size_t i = 0; i < steps * lanes; i += lanes) {
        const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&keys[i]));
        const __m256i adds = _mm256_permutevar8x32_epi32(ones, _mm256_srl_epi32(k, by));
        if constexpr (halves == 1) {
          seen[0] = _mm256_add_epi32(seen[0], adds);
        } else {
          const __m256i upper = _mm256_srai_epi32(_mm256_sll_epi32(k, fourth_to_sign), 31);
          seen[0] = _mm256_add_epi32(seen[0], _mm256_andnot_si256(upper, adds));
          seen[1] = _mm256_add_epi32(seen[1], _mm256_and_si256(upper, adds));
        }
      }
      for (std::size_t h = 0; h < halves; ++h) {
        even[h] = _mm256_add_epi32(even[h], _mm256_and_si256(seen[h], low_halves));
        odd[h] =
            _mm256_add_epi32(odd[h], _mm256_and_si256(_mm256_srli_epi32(seen[h], 4), low_halves));
      }
      keys = keys.subspan(steps * lanes);
    }
    for (std::size_t d = 0; d < radix; ++d) {
      std::array<std::uint8_t, 4 * lanes> bytes;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes.data()),
                          (d % 2 == 0 ? even : odd)[d / 8]);
      for (std::size_t i = d % 8 / 2; i < bytes.size(); i += 4) counts[d] += bytes[i];
    }
  }
  for (const key k : keys) ++counts[(k >> shift) & (radix - 1)];
}

}  // namespace

digit_loops vector_loops(unsigned radix_bits) noexcept {
  if (!__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("avx2")) return {};
  switch (radix_bits) {
    case 1:
      return {&count_by_8<1>, &move<by_8, 1>};
    case 2:
      return {&count_by_8<2>, &move<by_8, 2>};
    case 3:
      return {&count_by_8<3>, __builtin_cpu_supports("avx512f") ? &move<by_16, 3> : &move<by_8, 3>};
    case 4:
      return {&count_by_8<4>, nullptr};
    default:
      return {};
  }
}

#else

digit_loops vector_loops(unsigned) noexcept { return {}; }

#endif

}  // namespace radixsort

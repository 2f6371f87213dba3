// SPDX-License-Identifier: Apache-2.0
// Small vector vocabulary of the kernels. Included once by each kernel_<set>.cpp, which defines
// STRATA_ALIGN_SET (a namespace) and STRATA_ALIGN_BYTES (bytes of a native vector). Everything has
// internal linkage: code compiled with wider instructions must never be the copy of an inline
// function that the linker keeps for the rest of the program.
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12's own header warns about its deliberately undefined registers (PR105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define STRATA_ALIGN_INLINE [[gnu::always_inline]] inline

namespace align::STRATA_ALIGN_SET {
namespace {

inline constexpr int native_bytes = STRATA_ALIGN_BYTES;

template <class T>
struct native_of {
  typedef T type __attribute__((vector_size(STRATA_ALIGN_BYTES)));
  typedef T unaligned __attribute__((vector_size(STRATA_ALIGN_BYTES), aligned(1), may_alias));
  static constexpr int size = native_bytes / static_cast<int>(sizeof(T));
  // as many letters (bytes) as the vector has lanes
  typedef std::int8_t letters
      __attribute__((vector_size(STRATA_ALIGN_BYTES / sizeof(T)), aligned(1), may_alias));
};
template <class T>
using native = typename native_of<T>::type;

using n8 = native<std::int8_t>;
using n16 = native<std::int16_t>;
using n32 = native<std::int32_t>;

template <class V, class T>
STRATA_ALIGN_INLINE V splat(T x) {
  return x - V{};
}

// Saturating for 8 and 16 bits: the lower end of the range is the local alignment's zero, so
// clamping costs nothing.
#if STRATA_ALIGN_BYTES == 64
STRATA_ALIGN_INLINE n8 add(n8 a, n8 b) { return (n8)_mm512_adds_epi8((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n8 sub(n8 a, n8 b) { return (n8)_mm512_subs_epi8((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n8 max(n8 a, n8 b) { return (n8)_mm512_max_epi8((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n16 add(n16 a, n16 b) { return (n16)_mm512_adds_epi16((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n16 sub(n16 a, n16 b) { return (n16)_mm512_subs_epi16((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n16 max(n16 a, n16 b) { return (n16)_mm512_max_epi16((__m512i)a, (__m512i)b); }
STRATA_ALIGN_INLINE n32 max(n32 a, n32 b) { return (n32)_mm512_max_epi32((__m512i)a, (__m512i)b); }
/// Elements 1.. of lo, then element 0 of hi.
template <class V>
STRATA_ALIGN_INLINE V shift_in(V lo, V hi) {
  const __m512i middle = _mm512_alignr_epi64((__m512i)hi, (__m512i)lo, 2);
  return (V)_mm512_alignr_epi8(middle, (__m512i)lo, sizeof(lo[0]));
}
STRATA_ALIGN_INLINE n8 score(n8 q, n8 r, n8 table, n8, n8) {
  return (n8)_mm512_shuffle_epi8((__m512i)table, (__m512i)(q ^ r));
}
STRATA_ALIGN_INLINE n16 score(n16 q, n16 r, n16, n16 match, n16 mismatch) {
  return (n16)_mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask((__m512i)q, (__m512i)r),
                                      (__m512i)mismatch, (__m512i)match);
}
STRATA_ALIGN_INLINE n32 score(n32 q, n32 r, n32, n32 match, n32 mismatch) {
  return (n32)_mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask((__m512i)q, (__m512i)r),
                                      (__m512i)mismatch, (__m512i)match);
}
#elif STRATA_ALIGN_BYTES == 32
STRATA_ALIGN_INLINE n8 add(n8 a, n8 b) { return (n8)_mm256_adds_epi8((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n8 sub(n8 a, n8 b) { return (n8)_mm256_subs_epi8((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n8 max(n8 a, n8 b) { return (n8)_mm256_max_epi8((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n16 add(n16 a, n16 b) { return (n16)_mm256_adds_epi16((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n16 sub(n16 a, n16 b) { return (n16)_mm256_subs_epi16((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n16 max(n16 a, n16 b) { return (n16)_mm256_max_epi16((__m256i)a, (__m256i)b); }
STRATA_ALIGN_INLINE n32 max(n32 a, n32 b) { return (n32)_mm256_max_epi32((__m256i)a, (__m256i)b); }
template <class V>
STRATA_ALIGN_INLINE V shift_in(V lo, V hi) {
  const __m256i middle = _mm256_permute2x128_si256((__m256i)lo, (__m256i)hi, 0x21);
  return (V)_mm256_alignr_epi8(middle, (__m256i)lo, sizeof(lo[0]));
}
STRATA_ALIGN_INLINE n8 score(n8 q, n8 r, n8 table, n8, n8) {
  return (n8)_mm256_shuffle_epi8((__m256i)table, (__m256i)(q ^ r));
}
#else  // 16 bytes: what every x86-64 or AArch64 processor has, and plain C++ elsewhere
template <class V>
STRATA_ALIGN_INLINE V max_by_compare(V a, V b) {
  return a > b ? a : b;
}
#if defined(__x86_64__)
STRATA_ALIGN_INLINE n8 add(n8 a, n8 b) { return (n8)_mm_adds_epi8((__m128i)a, (__m128i)b); }
STRATA_ALIGN_INLINE n8 sub(n8 a, n8 b) { return (n8)_mm_subs_epi8((__m128i)a, (__m128i)b); }
STRATA_ALIGN_INLINE n8 max(n8 a, n8 b) { return max_by_compare(a, b); }
STRATA_ALIGN_INLINE n16 add(n16 a, n16 b) { return (n16)_mm_adds_epi16((__m128i)a, (__m128i)b); }
STRATA_ALIGN_INLINE n16 sub(n16 a, n16 b) { return (n16)_mm_subs_epi16((__m128i)a, (__m128i)b); }
STRATA_ALIGN_INLINE n16 max(n16 a, n16 b) { return (n16)_mm_max_epi16((__m128i)a, (__m128i)b); }
#elif defined(__aarch64__)
STRATA_ALIGN_INLINE n8 add(n8 a, n8 b) { return (n8)vqaddq_s8((int8x16_t)a, (int8x16_t)b); }
STRATA_ALIGN_INLINE n8 sub(n8 a, n8 b) { return (n8)vqsubq_s8((int8x16_t)a, (int8x16_t)b); }
STRATA_ALIGN_INLINE n8 max(n8 a, n8 b) { return (n8)vmaxq_s8((int8x16_t)a, (int8x16_t)b); }
STRATA_ALIGN_INLINE n16 add(n16 a, n16 b) { return (n16)vqaddq_s16((int16x8_t)a, (int16x8_t)b); }
STRATA_ALIGN_INLINE n16 sub(n16 a, n16 b) { return (n16)vqsubq_s16((int16x8_t)a, (int16x8_t)b); }
STRATA_ALIGN_INLINE n16 max(n16 a, n16 b) { return (n16)vmaxq_s16((int16x8_t)a, (int16x8_t)b); }
#else
template <class V, int Low, int High, bool Add>
STRATA_ALIGN_INLINE V saturating(V a, V b) {
  V out = a;
  for (unsigned i = 0; i < sizeof(V) / sizeof(a[0]); ++i) {
    const int x = Add ? a[i] + b[i] : a[i] - b[i];
    out[i] = static_cast<__typeof__(out[0] + 0)>(x < Low ? Low : x > High ? High : x);
  }
  return out;
}
STRATA_ALIGN_INLINE n8 add(n8 a, n8 b) { return saturating<n8, -128, 127, true>(a, b); }
STRATA_ALIGN_INLINE n8 sub(n8 a, n8 b) { return saturating<n8, -128, 127, false>(a, b); }
STRATA_ALIGN_INLINE n8 max(n8 a, n8 b) { return max_by_compare(a, b); }
STRATA_ALIGN_INLINE n16 add(n16 a, n16 b) { return saturating<n16, -32768, 32767, true>(a, b); }
STRATA_ALIGN_INLINE n16 sub(n16 a, n16 b) { return saturating<n16, -32768, 32767, false>(a, b); }
STRATA_ALIGN_INLINE n16 max(n16 a, n16 b) { return max_by_compare(a, b); }
#endif
STRATA_ALIGN_INLINE n32 max(n32 a, n32 b) { return max_by_compare(a, b); }
#if defined(__x86_64__)
template <class V>
STRATA_ALIGN_INLINE V shift_in(V lo, V hi) {
  constexpr int element = sizeof(lo[0]);
  return (V)_mm_or_si128(_mm_srli_si128((__m128i)lo, element),
                         _mm_slli_si128((__m128i)hi, 16 - element));
}
#else
STRATA_ALIGN_INLINE n8 shift_in(n8 lo, n8 hi) {
  return __builtin_shufflevector(lo, hi, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
}
STRATA_ALIGN_INLINE n16 shift_in(n16 lo, n16 hi) {
  return __builtin_shufflevector(lo, hi, 1, 2, 3, 4, 5, 6, 7, 8);
}
STRATA_ALIGN_INLINE n32 shift_in(n32 lo, n32 hi) {
  return __builtin_shufflevector(lo, hi, 1, 2, 3, 4);
}
#endif
STRATA_ALIGN_INLINE n8 score(n8 q, n8 r, n8, n8 match, n8 mismatch) {
  return q == r ? match : mismatch;
}
#endif
#if STRATA_ALIGN_BYTES != 64
STRATA_ALIGN_INLINE n16 score(n16 q, n16 r, n16, n16 match, n16 mismatch) {
  return q == r ? match : mismatch;
}
STRATA_ALIGN_INLINE n32 score(n32 q, n32 r, n32, n32 match, n32 mismatch) {
  return q == r ? match : mismatch;
}
#endif
// Letters widened to the lanes' type. (g++ 12 scalarises the generic conversion when it must go
// through two widths.)
template <class T>
STRATA_ALIGN_INLINE native<T> widen(const std::uint8_t* from) {
#if STRATA_ALIGN_BYTES == 64
  if constexpr (sizeof(T) == 4)
    return (n32)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif STRATA_ALIGN_BYTES == 32
  if constexpr (sizeof(T) == 4)
    return (n32)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) {
    int letters;
    __builtin_memcpy(&letters, from, sizeof letters);
    const __m128i pairs = _mm_unpacklo_epi8(_mm_cvtsi32_si128(letters), _mm_setzero_si128());
    return (n32)_mm_unpacklo_epi16(pairs, _mm_setzero_si128());
  }
  if constexpr (sizeof(T) == 2) {
    return (n16)_mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)),
                                  _mm_setzero_si128());
  }
#endif
  return __builtin_convertvector(*reinterpret_cast<const typename native_of<T>::letters*>(from),
                                 native<T>);
}

// 32-bit scores are bounded by the caller, so plain arithmetic is exact.
STRATA_ALIGN_INLINE n32 add(n32 a, n32 b) { return a + b; }
STRATA_ALIGN_INLINE n32 sub(n32 a, n32 b) { return a - b; }

/// f(0), ..., f(N-1), written out: the arrays indexed in f stay in registers.
template <int... I>
struct indices {};
template <int N, int... I>
struct make_indices : make_indices<N - 1, N - 1, I...> {};
template <int... I>
struct make_indices<0, I...> {
  using type = indices<I...>;
};
template <int I>
struct index_constant {
  constexpr operator int() const { return I; }
};
template <class F, int... I>
STRATA_ALIGN_INLINE void unrolled(F&& f, indices<I...>) {
  (f(index_constant<I>{}), ...);
}
template <int N, class F>
STRATA_ALIGN_INLINE void unrolled(F&& f) {
  unrolled(static_cast<F&&>(f), typename make_indices<N>::type{});
}
/// The same over the rows of a strip, but for lanes of STRATA_ALIGN_LOOPS bytes and more (every
/// one, where that is 1): a loop, in a third of the time of compilation.
#if !defined(STRATA_ALIGN_LOOPS)
#define STRATA_ALIGN_LOOPS 8
#endif
template <class T>
inline constexpr bool rows_are_unrolled = sizeof(T) < STRATA_ALIGN_LOOPS;
template <class T, int N, class F>
STRATA_ALIGN_INLINE void for_rows(F&& f) {
  if constexpr (rows_are_unrolled<T>) {
    unrolled<N>(static_cast<F&&>(f));
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < N; ++i) f(i);
  }
}
#define STRATA_ALIGN_LAMBDA __attribute__((always_inline))

/// A strip's lanes: one native vector for 8-bit lanes, two for 16 and four for 32, so that the
/// geometry never changes.
inline constexpr int lanes = native_bytes;
template <class T>
struct vec {
  static constexpr int parts = static_cast<int>(sizeof(T));
  static constexpr int width = native_of<T>::size;
  native<T> part[parts];
};

template <class T>
STRATA_ALIGN_INLINE vec<T> load(const void* from) {
  vec<T> out;
  unrolled<vec<T>::parts>([&](auto k) STRATA_ALIGN_LAMBDA {
    const int K = k;
    out.part[K] = reinterpret_cast<const typename native_of<T>::unaligned*>(from)[K];
  });
  return out;
}
template <class T>
STRATA_ALIGN_INLINE void store(void* to, vec<T> v) {
  unrolled<vec<T>::parts>([&](auto k) STRATA_ALIGN_LAMBDA {
    const int K = k;
    reinterpret_cast<typename native_of<T>::unaligned*>(to)[K] = v.part[K];
  });
}
template <class T>
STRATA_ALIGN_INLINE vec<T> load_letters(const std::uint8_t* from) {
  vec<T> out;
  unrolled<vec<T>::parts>([&](auto k) STRATA_ALIGN_LAMBDA {
    const int K = k;
    out.part[K] = widen<T>(from + K * vec<T>::width);
  });
  return out;
}
template <class T, class F>
STRATA_ALIGN_INLINE vec<T> each(F&& f) {
  vec<T> out;
  unrolled<vec<T>::parts>([&](auto k) STRATA_ALIGN_LAMBDA { out.part[k] = f(k); });
  return out;
}
template <class T>
STRATA_ALIGN_INLINE vec<T> fill(int x) {
  return each<T>([&](auto) STRATA_ALIGN_LAMBDA { return splat<native<T>>(static_cast<T>(x)); });
}
template <class T>
STRATA_ALIGN_INLINE vec<T> vadd(vec<T> a, vec<T> b) {
  return each<T>([&](auto k) STRATA_ALIGN_LAMBDA { return add(a.part[k], b.part[k]); });
}
template <class T>
STRATA_ALIGN_INLINE vec<T> vsub(vec<T> a, vec<T> b) {
  return each<T>([&](auto k) STRATA_ALIGN_LAMBDA { return sub(a.part[k], b.part[k]); });
}
template <class T>
STRATA_ALIGN_INLINE vec<T> vmax(vec<T> a, vec<T> b) {
  return each<T>([&](auto k) STRATA_ALIGN_LAMBDA { return max(a.part[k], b.part[k]); });
}
/// Every lane takes the value of the lane above it; the top lane takes `*top`.
template <class T>
STRATA_ALIGN_INLINE vec<T> from_above(vec<T> v, const T* top) {
  constexpr int parts = vec<T>::parts;
  const native<T> entering = *reinterpret_cast<const typename native_of<T>::unaligned*>(top);
  return each<T>([&](auto k) STRATA_ALIGN_LAMBDA {
    const int K = k;
    if (K + 1 < parts)
      return shift_in(v.part[K], v.part[K + 1]);
    else
      return shift_in(v.part[K], entering);
  });
}

}  // namespace
}  // namespace align::STRATA_ALIGN_SET

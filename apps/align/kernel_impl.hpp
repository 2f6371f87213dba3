// SPDX-License-Identifier: Apache-2.0
// The tile kernel, compiled once per instruction set (see kernel_vectors.hpp). Smith-Waterman with
// linear gaps takes seven vector instructions for `lanes` cells of 8 bits: xor and shuffle (the
// letters' score), add, two max, subtract, and the running max.
//
// H(i,j) = max(H(i-1,j-1) + s, L, F) with L and F the best that ends in a horizontal or vertical
// gap here. Both are carried as candidates for the *next* cell: linear gaps share one subtraction,
// L' = F' = H - gap; affine gaps (Gotoh, doi:10.1016/0022-2836(82)90398-9) are L' = max(L - extend,
// H - open) and likewise F'. No minus infinity is ever needed.
#include "kernel.hpp"
#include "kernel_vectors.hpp"

namespace align::STRATA_ALIGN_SET {
namespace {

template <class T, int R>
struct strip_state {
  vec<T> h[R];     // last column of each row: the diagonal of the row below
  vec<T> left[R];  // horizontal candidate for the next column
  vec<T> above;    // H above the first row, one column back: its diagonal
  vec<T> h2;       // bottom H two steps ago; one step ago is h[R-1]
  vec<T> f1, f2;   // bottom F one and two steps ago
};

template <class T>
STRATA_ALIGN_INLINE bool any(native<T> mask) {
  std::uint64_t words[native_bytes / 8];
  __builtin_memcpy(words, &mask, sizeof words);
  std::uint64_t all = 0;
  for (int w = 0; w < native_bytes / 8; ++w) all |= words[w];
  return all != 0;
}

/// The slow part of `locate`: reached only in steps that contain a cell equal to the target.
template <class T>
[[gnu::noinline]] void record_hits(tile_args& a, const T* row_of_lanes, int rows_per_lane,
                                   int row_in_lane, std::ptrdiff_t column) {
  for (int p = 0; p < lanes; ++p) {
    if (row_of_lanes[p] != static_cast<T>(a.target)) continue;
    const int lane = lanes - 1 - p;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(lane) * rows_per_lane + row_in_lane;
    const std::ptrdiff_t col = column - lane_lag * lane;
    if (row >= a.valid_rows || col < 0 || col >= a.columns) continue;
    ++a.count;
    if (a.found_row < 0 || row < a.found_row || (row == a.found_row && col < a.found_column)) {
      a.found_row = row;
      a.found_column = col;
    }
  }
}

template <class T, int R, bool Local, bool Affine, kernel_mode Mode>
struct tile {
  using V = vec<T>;
  strip_state<T, R> s;
  V best;
  V match, mismatch, table, open, extend, zero;

  /// One step. `Starting`: some lanes have not reached column 0 and must keep the left border.
  template <bool Starting>
  STRATA_ALIGN_INLINE void step(tile_args& a, int t, const T* in_h, const T* in_f, T* out_h,
                                T* out_f) {
    const std::ptrdiff_t column = a.first_column + t;
    const std::ptrdiff_t lowest = column - lane_lag * (lanes - 1);
    const V r = load_letters<T>(((lowest & 1) ? a.ref_odd : a.ref_even) + (lowest >> 1));
    V running[1];
    if constexpr (Starting) {
      running[0] = each<T>([&](auto k) STRATA_ALIGN_LAMBDA {
        const int K = k;
        native<T> mask{};
        for (int p = 0; p < V::width; ++p)
          mask[p] = lowest + lane_lag * (K * V::width + p) >= 0 ? T(-1) : T(0);
        return mask;
      });
    }
    const V up = from_above(s.h2, in_h + t);
    V f = Affine ? from_above(s.f2, in_f + t) : vsub(up, open);
    V diagonal = s.above;
    s.above = up;
    s.h2 = s.h[R - 1];
    native<T> hit{};
    for_rows<T, R>([&](auto index) STRATA_ALIGN_LAMBDA {
      const int I = index;
      const V q = load_letters<T>(a.query + I * lanes);
      const V pair = each<T>([&](auto k) STRATA_ALIGN_LAMBDA {
        const int K = k;
        return score(q.part[K], r.part[K], table.part[K], match.part[K], mismatch.part[K]);
      });
      V h = vmax(vmax(vadd(diagonal, pair), s.left[I]), f);
      if constexpr (Local && sizeof(T) == 4) h = vmax(h, zero);
      diagonal = s.h[I];
      V left;
      if constexpr (Affine) {
        const V opened = vsub(h, open);
        left = vmax(vsub(s.left[I], extend), opened);
        f = vmax(vsub(f, extend), opened);
      } else {
        left = vsub(h, open);
        f = left;
      }
      if constexpr (Starting) {
        h = each<T>([&](auto k) STRATA_ALIGN_LAMBDA {
          const int K = k;
          return running[0].part[K] ? h.part[K] : s.h[I].part[K];
        });
        left = each<T>([&](auto k) STRATA_ALIGN_LAMBDA {
          const int K = k;
          return running[0].part[K] ? left.part[K] : s.left[I].part[K];
        });
      }
      s.h[I] = h;
      s.left[I] = left;
      if constexpr (Mode == kernel_mode::locate) {
        unrolled<V::parts>([&](auto k) STRATA_ALIGN_LAMBDA {
          const int K = k;
          hit |= (native<T>)(h.part[K] == splat<native<T>>(static_cast<T>(a.target)));
        });
      } else {
        best = vmax(best, h);
      }
      if constexpr (Mode == kernel_mode::tap) {
        if (I == a.tap_row % R) tap(a, column, h, f);
      }
    });
    if constexpr (Mode == kernel_mode::locate) {
      if (any<T>(hit)) [[unlikely]] {
        const strip_state<T, R> here = s;  // a copy, so that the state itself can stay in registers
        locate_rows(here, a, column);
      }
    }
    store(out_h + t, s.h[R - 1]);
    if constexpr (Affine) {
      s.f2 = s.f1;
      s.f1 = f;
      store(out_f + t, f);
    }
  }

  [[gnu::noinline]] static void locate_rows(const strip_state<T, R>& s, tile_args& a,
                                            std::ptrdiff_t column) {
    for_rows<T, R>([&](auto index) STRATA_ALIGN_LAMBDA {
      const int I = index;
      native<T> hit{};
      unrolled<V::parts>([&](auto k) STRATA_ALIGN_LAMBDA {
        const int K = k;
        hit |= (native<T>)(s.h[I].part[K] == splat<native<T>>(static_cast<T>(a.target)));
      });
      if (any<T>(hit)) {
        T values[lanes];
        store(values, s.h[I]);
        record_hits<T>(a, values, R, I, column);
      }
    });
  }

  STRATA_ALIGN_INLINE static void tap(tile_args& a, std::ptrdiff_t column, V h, V f) {
    const int lane = a.tap_row / R;
    const std::ptrdiff_t col = column - lane_lag * lane;
    if (col < 0 || col >= a.columns) return;
    T values[lanes];
    store(values, h);
    a.tap_h[col] = values[lanes - 1 - lane] + a.base;
    store(values, f);
    a.tap_f[col] = values[lanes - 1 - lane] + a.base;
  }

  STRATA_ALIGN_INLINE void run(tile_args& a) {
    match = fill<T>(a.match);
    mismatch = fill<T>(a.mismatch);
    open = fill<T>(a.open);
    extend = fill<T>(a.extend);
    zero = fill<T>(0);
    if constexpr (sizeof(T) == 1) {
      T entries[lanes];
      for (int p = 0; p < lanes; ++p)
        entries[p] = static_cast<T>(p % 16 == 0 ? a.match : a.mismatch);
      table = load<T>(entries);
    } else {
      table = zero;
    }
    const auto* in = static_cast<const T*>(a.state_in);
    for_rows<T, R>([&](auto index) STRATA_ALIGN_LAMBDA {
      const int I = index;
      s.h[I] = load<T>(in + I * lanes);
      s.left[I] = load<T>(in + (R + I) * lanes);
    });
    s.above = load<T>(in + 2 * R * lanes);
    s.h2 = load<T>(in + (2 * R + 1) * lanes);
    s.f1 = load<T>(in + (2 * R + 2) * lanes);
    s.f2 = load<T>(in + (2 * R + 3) * lanes);
    best = fill<T>(sizeof(T) == 1 ? -128 : sizeof(T) == 2 ? -32768 : -2147483647 - 1);

    const auto* in_h = static_cast<const T*>(a.in_h);
    const auto* in_f = static_cast<const T*>(a.in_f);
    auto* out_h = static_cast<T*>(a.out_h);
    auto* out_f = static_cast<T*>(a.out_f);
    // Two steps at a time need no moves between registers; an odd one takes the slower form. Not
    // for few tiles, and not for a sanitizer.
    constexpr bool in_pairs = Mode == kernel_mode::plain && rows_are_unrolled<T>;
    int t = 0;
    for (; t < a.steps; ++t) {
      const bool is_odd = in_pairs && (a.steps - t) % 2 != 0;
      if (a.first_column + t >= lane_lag * lanes && !is_odd) break;
      step<true>(a, t, in_h, in_f, out_h, out_f);
    }
    for (; t < a.steps; ++t) {
      step<false>(a, t, in_h, in_f, out_h, out_f);
      if constexpr (in_pairs) step<false>(a, ++t, in_h, in_f, out_h, out_f);
    }

    auto* out = static_cast<T*>(a.state_out);
    for_rows<T, R>([&](auto index) STRATA_ALIGN_LAMBDA {
      const int I = index;
      store(out + I * lanes, s.h[I]);
      store(out + (R + I) * lanes, s.left[I]);
    });
    store(out + 2 * R * lanes, s.above);
    store(out + (2 * R + 1) * lanes, s.h2);
    store(out + (2 * R + 2) * lanes, s.f1);
    store(out + (2 * R + 3) * lanes, s.f2);
    if constexpr (Mode != kernel_mode::locate) {
      T values[lanes];
      store(values, best);
      a.best = values[0];
      for (int p = 1; p < lanes; ++p) a.best = values[p] > a.best ? values[p] : a.best;
    }
  }
};

template <class T, int R, bool Local, bool Affine, kernel_mode Mode>
void run_tile(tile_args& a) {
  tile<T, R, Local, Affine, Mode> k;
  k.run(a);
}

template <class T, bool Local, bool Affine, kernel_mode Mode>
void add_heights(tile_function (&to)[kernel_set::heights]) {
  to[0] = run_tile<T, 1, Local, Affine, Mode>;
  to[1] = run_tile<T, 2, Local, Affine, Mode>;
  to[2] = run_tile<T, 4, Local, Affine, Mode>;
  to[3] = run_tile<T, 8, Local, Affine, Mode>;
}

template <class T>
void add_width(kernel_set& set, lane_width width) {
  const int w = static_cast<int>(width);
  using enum kernel_mode;
  add_heights<T, true, false, plain>(set.local_linear[w][0]);
  add_heights<T, true, false, locate>(set.local_linear[w][1]);
  add_heights<T, true, true, plain>(set.local_affine[w][0]);
  add_heights<T, true, true, locate>(set.local_affine[w][1]);
  if constexpr (sizeof(T) > 1) {
    constexpr bool zero_is_lowest =
        sizeof(T) < 4;  // saturating lanes: local and global are one kernel
    add_heights<T, zero_is_lowest, true, plain>(set.global_affine[w][0]);
    add_heights<T, zero_is_lowest, true, locate>(set.global_affine[w][1]);
    add_heights<T, zero_is_lowest, true, tap>(set.global_affine[w][2]);
  }
}

kernel_set make_set(const char* name) {
  kernel_set set;
  set.name = name;
  set.lanes = lanes;
  add_width<std::int8_t>(set, lane_width::bits8);
  add_width<std::int16_t>(set, lane_width::bits16);
  add_width<std::int32_t>(set, lane_width::bits32);
  return set;
}

}  // namespace
}  // namespace align::STRATA_ALIGN_SET

// SPDX-License-Identifier: Apache-2.0
// One tile: choose the narrowest exact format, run the kernel, pass the borders on, note the
// maximum.
#include <algorithm>
#include <cstring>

#include "apps/align/kernel_accesses.hpp"
#include "apps/align/lane_format.hpp"
#include "apps/align/sweep.hpp"
#include "apps/align/sweep_state.hpp"

namespace align {
namespace {
constexpr std::size_t lanes_max = 64;
constexpr std::size_t heights_max = 1u << (kernel_set::heights - 1);
constexpr std::int32_t byte_border_max = 200;
constexpr std::size_t state_max = (2 * heights_max + state_extra) * lanes_max;
}  // namespace

// Runs the kernel that counts and finds the cells of a score, from the tile's unchanged input. The
// maximum may be a padding cell's, into which an alignment of another tile fades: then the next
// lower score is looked for. Only who looks at a single tile gets there; who looks at all has seen
// where that alignment ends.
void sweep::locate(int r, int c, tile_function f, tile_args a, std::int32_t score) {
  alignas(64) std::int32_t unused_state[state_max];
  a.state_out = unused_state;
  for (; counts_for_best(r, c, score); --score) {
    a.target = score - a.base;
    f(a);
    if (a.count == 0) continue;
    const std::ptrdiff_t row0 = strip_at(r).first_row;
    return best_.add(score, {row0 + a.found_row, a.found_column}, a.count);
  }
}

bool sweep::run_bytes(int r, int c, tile_args& a) {
  if (!options_.local || options_.narrowest != lane_width::bits8 || !bytes_suffice(options_.score))
    return false;
  state& lanes = states_[static_cast<std::size_t>(r)];
  border& in = border_at(c, r);
  border& out = border_at(c, r + 1);
  const auto& strip = strip_at(r);
  const std::size_t count = state_values(r);
  const bool starts = a.first_column == 0;
  // Columns beyond the reference get no border from above; and the first strip gets none at all.
  const std::ptrdiff_t given =
      r == 0 ? 0 : std::clamp<std::ptrdiff_t>(columns_ - a.first_column, 0, a.steps);
  if ((!starts && !lanes.bytes) || (given > 0 && !in.bytes)) return false;
  if ((starts && left_border(r) >= byte_border_max) ||
      (r == 0 && options_.top_border >= byte_border_max))
    return false;

  const std::ptrdiff_t offset = offset_in_border(r, c, a);
  std::int8_t* in_h = in.narrow() + offset;
  std::int8_t* in_f = in_h + block_steps_ + border_slack;
  const int filler = (r == 0 ? options_.top_border : 0) - byte_base;
  std::memset(in_h + given, filler, static_cast<std::size_t>(a.steps - given));
  std::memset(in_f + given, filler, static_cast<std::size_t>(a.steps - given));
  in.bytes = true;
  if (starts) {
    if (!lanes.values) lanes.values = std::make_unique_for_overwrite<std::int32_t[]>(count);
    std::memset(lanes.values.get(), left_border(r) - byte_base, count);
    lanes.bytes = true;
  }

  alignas(64) std::int8_t next[state_max];
  a.base = byte_base;
  a.in_h = in_h;
  a.in_f = in_f;
  a.out_h = out.narrow() + offset;
  a.out_f = out.narrow() + offset + block_steps_ + border_slack;
  a.state_in = lanes.values.get();
  a.state_out = next;
  const auto& functions =
      options_.score.linear() ? options_.kernels->local_linear : options_.kernels->local_affine;
  constexpr int width = static_cast<int>(lane_width::bits8);
  const bool affine = reads_gaps();
  kernel_reads(a.state_in, static_cast<std::ptrdiff_t>(count));
  kernel_reads(in_h, a.steps);
  if (affine) kernel_reads(in_f, a.steps);
  kernel_writes(a.out_h, a.steps);
  if (affine) kernel_writes(a.out_f, a.steps);
  functions[width][0][strip.height_index](a);
  effort_.by_width[width].fetch_add(1, std::memory_order_relaxed);
  if (a.best >= byte_limit) {
    effort_.repeated.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::int32_t score = a.best + byte_base;
  note_maximum(r, c, score);
  locate(r, c, functions[width][1][strip.height_index], a, score);
  std::memcpy(lanes.values.get(), next, count);
  out.bytes = true;
  return true;
}

// What comes to the tile, as scores: the state of its strip, and the borders above it.
void sweep::read_scores(int r, int c, const tile_args& a, std::int32_t* start, std::int32_t* in_h,
                        std::int32_t* in_f) {
  state& lanes = states_[static_cast<std::size_t>(r)];
  border& in = border_at(c, r);
  const int height_index = strip_at(r).height_index;
  const auto count = static_cast<std::ptrdiff_t>(state_values(r));
  const scoring& s = options_.score;
  const std::ptrdiff_t stride = block_steps_ + border_slack;
  const std::ptrdiff_t offset = offset_in_border(r, c, a);
  if (!lanes.values)
    lanes.values = std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(count));
  const bool starts_in_band = a.first_column > 0 && c == first_block(r);
  if (a.first_column == 0)
    start_state(r, start);
  else if (lanes.bytes)
    from_lanes<std::int8_t>(lanes.values.get(), start, count, byte_base);
  else if (!starts_in_band)
    std::copy_n(lanes.values.get(), count, start);
  std::ptrdiff_t given =
      has_tile_above(r, c) ? std::clamp<std::ptrdiff_t>(columns_ - a.first_column, 0, a.steps) : 0;
  if (r == 0) {
    given = a.steps;
    for (std::ptrdiff_t t = 0; t < a.steps; ++t) {
      // An anchored alignment may begin with a gap; beyond the reference's end any plausible value
      // will do.
      const std::ptrdiff_t column = std::min(a.first_column + t, columns_ - 1);
      in_h[t] =
          options_.local ? options_.top_border : static_cast<std::int32_t>(-s.gap(column + 1));
      in_f[t] = options_.local ? options_.top_border : in_h[t] - s.open;
    }
  } else if (in.bytes && given > 0) {
    from_lanes<std::int8_t>(in.narrow() + offset, in_h, given, byte_base);
    from_lanes<std::int8_t>(in.narrow() + offset + stride, in_f, given, byte_base);
  } else {
    std::copy_n(in.wide() + offset, given, in_h);
    std::copy_n(in.wide() + offset + stride, given, in_f);
  }
  if (starts_in_band) start_state_in_band(r, in_h[0], start);
  // Where nothing comes from above: beyond the reference's end take what keeps the range of scores
  // small, beyond the band what a gap leaves of the last score above.
  std::int32_t filler = 0;
  if (!options_.local) {
    filler = start[(2 << height_index) * lanes_ + lanes_ - 1];
    if (r > 0 && !has_tile_above(r, c)) filler -= static_cast<std::int32_t>(s.gap(a.steps + 1));
  }
  std::fill(in_h + given, in_h + a.steps, filler);
  std::fill(in_f + given, in_f + a.steps, options_.local ? 0 : filler - s.open);
}

// What the tile leaves, as bytes again if all of it is small.
void sweep::pass_on(int r, int c, const tile_args& a, const std::int32_t* next,
                    const std::int32_t* out_h, const std::int32_t* out_f) {
  state& lanes = states_[static_cast<std::size_t>(r)];
  border& out = border_at(c, r + 1);
  const auto count = static_cast<std::ptrdiff_t>(state_values(r));
  const scoring& s = options_.score;
  const std::ptrdiff_t stride = block_steps_ + border_slack;
  const std::ptrdiff_t offset = offset_in_border(r, c, a);
  const bool affine = reads_gaps();
  score_range leaving;
  leaving.include(out_h, a.steps);
  if (affine) leaving.include(out_f, a.steps);
  leaving.include(next, count);
  const bool bytes = options_.local && options_.narrowest == lane_width::bits8 &&
                     bytes_suffice(s) && leaving.high < byte_limit + byte_base - s.match;
  out.bytes = lanes.bytes = bytes;
  if (bytes) {
    // Gap candidates below zero may become zero: a local alignment never takes them.
    to_lanes<std::int8_t>(next, lanes.values.get(), count, byte_base);
    to_lanes<std::int8_t>(out_h, out.narrow() + offset, a.steps, byte_base);
    if (affine) to_lanes<std::int8_t>(out_f, out.narrow() + offset + stride, a.steps, byte_base);
  } else {
    std::copy_n(next, count, lanes.values.get());
    std::copy_n(out_h, a.steps, out.wide() + offset);
    if (affine) std::copy_n(out_f, a.steps, out.wide() + offset + stride);
  }
}

void sweep::run_wide(int r, int c, tile_args& a) {
  const auto& strip = strip_at(r);
  const std::ptrdiff_t strip_rows = static_cast<std::ptrdiff_t>(lanes_) << strip.height_index;
  const auto count = static_cast<std::ptrdiff_t>(state_values(r));
  const scoring& s = options_.score;
  const std::ptrdiff_t stride = block_steps_ + border_slack;
  alignas(64) std::int32_t start[state_max];
  const auto scratch =
      std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(6 * stride));
  std::int32_t* const in_h = scratch.get();
  std::int32_t* const in_f = in_h + stride;
  read_scores(r, c, a, start, in_h, in_f);

  // The format.
  score_range range;
  range.include(start, count);
  range.include(in_h, a.steps);
  if (reads_gaps()) range.include(in_f, a.steps);
  a.base = 0;
  const bool narrow = options_.narrowest != lane_width::bits32 &&
                      base_for_16_bits(s, range, strip_rows, options_.local, a.base);
  const int width = static_cast<int>(narrow ? lane_width::bits16 : lane_width::bits32);

  // The kernel. Its borders and states live in the upper part of the scratch memory.
  std::int32_t* const out_h = in_h + 4 * stride;
  std::int32_t* const out_f = in_h + 5 * stride;
  alignas(64) std::int32_t lane_state[state_max];
  alignas(64) std::int32_t next[state_max];
  if (narrow) {
    auto* const lane_in = reinterpret_cast<std::int16_t*>(in_h + 2 * stride);
    to_lanes<std::int16_t>(in_h, lane_in, a.steps, a.base);
    to_lanes<std::int16_t>(in_f, lane_in + stride, a.steps, a.base);
    to_lanes<std::int16_t>(start, lane_state, count, a.base);
    a.in_h = lane_in;
    a.in_f = lane_in + stride;
    a.out_h = lane_in + 2 * stride;
    a.out_f = lane_in + 3 * stride;
    a.state_in = lane_state;
  } else {
    a.base = 0;
    a.in_h = in_h;
    a.in_f = in_f;
    a.out_h = out_h;
    a.out_f = out_f;
    a.state_in = start;
  }
  a.state_out = next;
  const bool last = options_.keep_last_row && r + 1 == strips();
  if (last) {
    a.tap_row = static_cast<int>(strip.rows - 1);
    a.tap_h = last_h_.data();
    a.tap_f = last_f_.data();
    const std::ptrdiff_t lag = lane_lag * (a.tap_row >> strip.height_index);
    const std::ptrdiff_t from = std::max<std::ptrdiff_t>(a.first_column - lag, 0);
    const std::ptrdiff_t to = std::min(a.first_column - lag + a.steps, columns_);
    for (std::int32_t* const row : {a.tap_h, a.tap_f})
      kernel_writes(row + from, (to - from) * static_cast<std::ptrdiff_t>(sizeof *row));
  }
  const auto function = [&](kernel_mode mode) {
    const int m = static_cast<int>(mode);
    if (!options_.local) return options_.kernels->global_affine[width][m][strip.height_index];
    return (s.linear() ? options_.kernels->local_linear
                       : options_.kernels->local_affine)[width][m][strip.height_index];
  };
  function(last ? kernel_mode::tap : kernel_mode::plain)(a);
  effort_.by_width[width].fetch_add(1, std::memory_order_relaxed);
  const std::int32_t score = a.best + a.base;
  note_maximum(r, c, score);
  locate(r, c, function(kernel_mode::locate), a,
         options_.local ? score : std::min(score, options_.target));

  if (narrow) {
    from_lanes<std::int16_t>(a.out_h, out_h, a.steps, a.base);
    from_lanes<std::int16_t>(a.out_f, out_f, a.steps, a.base);
    std::int32_t wide[state_max];
    from_lanes<std::int16_t>(next, wide, count, a.base);
    std::copy_n(wide, count, next);
  }
  pass_on(r, c, a, next, out_h, out_f);
}

}  // namespace align

// SPDX-License-Identifier: Apache-2.0
#include "apps/align/sweep.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <strata/detail/check.hpp>

#include "apps/align/sweep_state.hpp"

namespace align {
namespace {

// Of the columns of the last row that the band leaves out: below any score there is.
constexpr std::int32_t out_of_band = std::numeric_limits<std::int32_t>::min() / 2;
static_assert(out_of_band < -max_score);

int choose_height(const sweep_options& o, std::ptrdiff_t rows, int lanes) {
  if (o.height_index >= 0) return o.height_index;
  // Tall lanes amortise the borders; but every worker wants a strip of its own.
  int height = 3;
  while (height > 1 && o.workers > 1 &&
         rows < (static_cast<std::ptrdiff_t>(lanes) << height) * 2 * o.workers)
    --height;
  return height;
}

int choose_block(const sweep_options& o, std::ptrdiff_t columns, std::ptrdiff_t strip_rows) {
  if (o.block_steps > 0) return o.block_steps;
  // Of a strip, a band contains few columns: small tiles, so that little beside them is computed.
  const bool banded = o.within.highest - o.within.lowest < columns - strip_rows;
  const std::ptrdiff_t width =
      banded ? (o.within.highest - o.within.lowest + strip_rows) / 2 : columns;
  // A tile must dwarf what starting it costs, stay in the L1 cache, and leave the workers something
  // to share. Smaller ones than the cache asks for, as hits are looked for tile by tile.
  const std::ptrdiff_t share =
      o.workers > 1 ? width / (4 * static_cast<std::ptrdiff_t>(o.workers)) : width;
  return static_cast<int>(std::clamp<std::ptrdiff_t>(share / 64 * 64, banded ? 512 : 1024, 4096));
}

}  // namespace

sweep::sweep(letters_view query, letters_view ref, const sweep_options& options)
    : options_(options),
      lanes_(options.kernels->lanes),
      rows_(query.size()),
      columns_(ref.size()),
      height_index_(choose_height(options, rows_, lanes_)),
      query_(query, lanes_, height_index_),
      ref_(ref, lanes_),
      block_steps_(choose_block(options, columns_, std::ptrdiff_t{lanes_} << height_index_)),
      best_(options.local ? 1 : options.target) {
  if (rows_ == 0 || columns_ == 0) {
    query_ = packed_query({}, lanes_, 0);
    return;
  }
  blocks_ = end_block(strips() - 1);
  border_stride_ =
      (block_steps_ + border_slack) * static_cast<std::ptrdiff_t>(sizeof(std::int32_t)) * 2;
  // Left uninitialised: most borders only ever use their first quarter, and untouched pages cost
  // nothing.
  border_bytes_.reset(new std::byte[static_cast<std::size_t>(border_stride_ * blocks_ * 2)]);
  borders_ = std::make_unique<border[]>(static_cast<std::size_t>(blocks_) * 2);
  for (int b = 0; b < 2 * blocks_; ++b)
    borders_[static_cast<std::size_t>(b)].data = border_bytes_.get() + border_stride_ * b;
  states_ = std::make_unique<state[]>(static_cast<std::size_t>(strips()));
  if (options_.local)
    maxima_.assign(static_cast<std::size_t>(strips()) * static_cast<std::size_t>(blocks_), 0);
  if (options_.keep_last_row) {
    last_h_.assign(static_cast<std::size_t>(columns_), out_of_band);
    last_f_.assign(static_cast<std::size_t>(columns_), out_of_band);
  }
}

sweep::~sweep() = default;

void sweep::release() {
  border_bytes_.reset();
  borders_.reset();
  states_.reset();
  ref_ = packed_reference({}, lanes_);
}

std::int64_t sweep::tiles() const {
  std::int64_t sum = 0;
  for (int r = 0; r < strips(); ++r) sum += end_block(r) - first_block(r);
  return sum;
}

sweep::rectangle sweep::tile_cells(int r, int c) const {
  const auto& strip = strip_at(r);
  const std::ptrdiff_t top_begin = static_cast<std::ptrdiff_t>(c) * block_steps_ - origin(r);
  return {strip.first_row, strip.first_row + strip.rows,
          std::clamp<std::ptrdiff_t>(top_begin - shear(), 0, columns_),
          std::clamp<std::ptrdiff_t>(top_begin + block_steps_, 0, columns_)};
}

sweep::tile_number sweep::tile_of(cell where) const {
  // Only the last strip may be lower than the others.
  const int r =
      static_cast<int>(where.row / (static_cast<std::ptrdiff_t>(lanes_) << height_index_));
  const auto& strip = strip_at(r);
  const std::ptrdiff_t lane = (where.row - strip.first_row) >> strip.height_index;
  return {r, static_cast<int>((origin(r) + where.column + lane_lag * lane) / block_steps_)};
}

sweep::border& sweep::border_at(int c, int parity) const {
  return borders_[static_cast<std::size_t>(2 * c + (parity & 1))];
}

std::size_t sweep::border_bytes(bool bytes) const {
  const auto elements = static_cast<std::size_t>(block_steps_ + border_slack) *
                        (options_.score.linear() && options_.local ? 1 : 2);
  return elements * (bytes ? 1 : sizeof(std::int32_t));
}

std::size_t sweep::state_values(int r) const {
  return static_cast<std::size_t>((2 << strip_at(r).height_index) + state_extra) *
         static_cast<std::size_t>(lanes_);
}

std::size_t sweep::scores_bytes_max() const {
  return std::max(border_bytes(false), state_values(0) * sizeof(std::int32_t));
}

sweep::scores_view sweep::state_of(int r) const {
  const state& s = states_[static_cast<std::size_t>(r)];
  return {std::as_bytes(std::span(s.values.get(), state_values(r)))
              .first(state_values(r) * (s.bytes ? 1 : sizeof(std::int32_t))),
          s.bytes};
}

void sweep::set_state(int r, scores_view from) {
  const std::size_t bytes = state_values(r) * (from.bytes ? 1 : sizeof(std::int32_t));
  STRATA_CHECK(from.data.size() == bytes, from.data.size(), r);
  state& s = states_[static_cast<std::size_t>(r)];
  s.values = std::make_unique_for_overwrite<std::int32_t[]>(state_values(r));
  s.bytes = from.bytes;
  std::memcpy(s.values.get(), from.data.data(), bytes);
}

sweep::scores_view sweep::border_below(int r, int c) const {
  const border& b = border_at(c, r + 1);
  return {{b.data, border_bytes(b.bytes)}, b.bytes};
}

void sweep::set_border_above(int r, int c, scores_view from) {
  STRATA_CHECK(from.data.size() == border_bytes(from.bytes), from.data.size(), r, c);
  border& b = border_at(c, r);
  b.bytes = from.bytes;
  std::memcpy(b.data, from.data.data(), from.data.size());
}

tile_args sweep::arguments(int r, int c) const {
  const auto& strip = strip_at(r);
  tile_args a;
  const std::ptrdiff_t begin = std::max(static_cast<std::ptrdiff_t>(c) * block_steps_, origin(r));
  const std::ptrdiff_t end =
      std::min(static_cast<std::ptrdiff_t>(c + 1) * block_steps_, origin(r) + steps_per_strip());
  a.ref_even = ref_.even();
  a.ref_odd = ref_.odd();
  a.first_column = begin - origin(r);
  a.steps = static_cast<int>(end - begin);
  a.query = query_.letters(strip);
  a.match = options_.score.match;
  a.mismatch = options_.score.mismatch;
  a.open = options_.score.open;
  a.extend = options_.score.extend;
  a.valid_rows = strip.rows;
  a.columns = columns_;
  return a;
}

// The strip before its first column, in scores: zeros, or the left border of an anchored alignment.
void sweep::start_state(int r, std::int32_t* values) const {
  const auto& strip = strip_at(r);
  const int height = 1 << strip.height_index;
  const std::size_t count = state_values(r);
  if (options_.local) {
    std::fill_n(values, count, left_border(r));
    return;
  }
  const scoring& s = options_.score;
  const int top = options_.top_left_open < 0 ? s.open : options_.top_left_open;
  // H left of row `row`; row -1 is the corner.
  const auto boundary = [&](std::ptrdiff_t row) {
    return row < 0 ? 0
                   : static_cast<std::int32_t>(-(top + static_cast<std::int64_t>(row) * s.extend));
  };
  for (int p = 0; p < lanes_; ++p) {
    const std::ptrdiff_t first =
        strip.first_row + static_cast<std::ptrdiff_t>(lanes_ - 1 - p) * height;
    const auto at = [&](int v) -> std::int32_t& { return values[v * lanes_ + p]; };
    for (int i = 0; i < height; ++i) {
      at(i) = boundary(first + i);
      at(height + i) = boundary(first + i) - s.open;
    }
    at(2 * height) = boundary(first - 1);
    at(2 * height + 1) = boundary(first + height - 1);
    at(2 * height + 2) = at(2 * height + 3) = boundary(first + height - 1) - s.open;
  }
}

// The strip before its first tile if that is not at the first column: scores that are never too
// high, from H above the first cell of that tile. One column less costs an alignment at most a pair
// that becomes a gap; some more rows cost a gap.
void sweep::start_state_in_band(int r, std::int32_t above, std::int32_t* values) const {
  const auto& strip = strip_at(r);
  const scoring& s = options_.score;
  const std::size_t rows = static_cast<std::size_t>(lanes_) << strip.height_index;
  const std::int64_t columns_back = lane_lag * lanes_ + 1;
  const std::int64_t low = above - columns_back * (s.match + std::max(s.open, s.extend)) -
                           s.gap(static_cast<std::ptrdiff_t>(rows) + 1);
  const auto h = static_cast<std::int32_t>(low), gap = static_cast<std::int32_t>(low - s.open);
  const auto lanes = static_cast<std::size_t>(lanes_);
  std::fill_n(values, rows, h);
  std::fill_n(values + rows, rows, gap);
  std::fill_n(values + 2 * rows, 2 * lanes, h);
  std::fill_n(values + 2 * rows + 2 * lanes, 2 * lanes, gap);
}

void sweep::run_tile(int r, int c) {
  tile_args a = arguments(r, c);
  if (!run_bytes(r, c, a)) run_wide(r, c, a);
}

}  // namespace align

// SPDX-License-Identifier: Apache-2.0
// The interface between the tile driver and the vector kernels.
//
// The matrix is cut into horizontal strips of lanes x R rows. Lane l of a strip owns R consecutive
// rows and runs two columns behind lane l-1 (the lag hides the latency of handing a lane's bottom
// row to the next lane). So a strip advances as a slanted front: at the step in which the top lane
// is at column j, lane l is at column j - 2l. Everything here counts *steps*, named by the column
// of the top lane. The bottom border written at a step is the top border the next strip needs at
// the same index.
//
// Vectors hold the lanes from the bottom up (index 0 = last lane): then "take the value of the lane
// above" is a shift towards index 0, letters of the reference load without shuffling, and the
// bottom border is written by overlapping vector stores whose element 0 is the final one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace align {

/// Letters as the kernels see them: 0..3 match themselves, nothing else matches anything.
inline constexpr std::uint8_t letter_ambiguous = 4;      ///< in sequences and in the query
inline constexpr std::uint8_t letter_query_padding = 5;  ///< rows below the last
inline constexpr std::uint8_t letter_ref_ambiguous =
    8;                                                 ///< the reference's form of letter_ambiguous
inline constexpr std::uint8_t letter_ref_padding = 9;  ///< columns outside the reference

/// Steps lane l runs behind lane l-1.
inline constexpr int lane_lag = 2;

/// Number of vectors in a saved strip state beyond the 2R of the rows: diagonal, bottom H two steps
/// ago, bottom F one and two ago.
inline constexpr int state_extra = 4;

/// Elements a border must be readable (inputs) or writable (outputs) beyond its last step.
inline constexpr int border_slack = 64;

enum class lane_width : int { bits8 = 0, bits16 = 1, bits32 = 2 };
enum class kernel_mode : int {
  plain = 0,  ///< compute, and report the maximum
  locate =
      1,  ///< also count the cells equal to `target` and find the first of them in row-major order
  tap = 2,  ///< also copy one row (H and the vertical gap leaving it) out of the strip
};

/// One tile: `steps` steps of one strip. Lane values are scores minus `base` (8 bits: base = 128,
/// and so on; see tile.cpp).
struct tile_args {
  const std::uint8_t* ref_even = nullptr;  ///< letters of columns 0, 2, 4...; readable from index
                                           ///< -lanes to beyond the last step
  const std::uint8_t* ref_odd = nullptr;   ///< letters of columns 1, 3, 5...
  std::ptrdiff_t first_column = 0;         ///< of the top lane at the first step
  int steps = 0;
  const std::uint8_t* query = nullptr;  ///< [R][lanes] letters, lanes from the bottom up
  const void* in_h = nullptr;           ///< top border: H
  const void* in_f =
      nullptr;            ///< top border: vertical-gap candidate for the first row (affine only)
  void* out_h = nullptr;  ///< bottom border, the same indices; must not overlap the input
  void* out_f = nullptr;
  const void* state_in = nullptr;  ///< [2R + state_extra][lanes]
  void* state_out = nullptr;       ///< may equal state_in
  int match = 0, mismatch = 0;     ///< added
  int open = 0, extend = 0;        ///< subtracted; linear kernels use `open` alone

  // locate: cells outside [0, valid_rows) x [0, columns) are ignored
  std::int32_t target = 0;
  std::ptrdiff_t valid_rows = 0, columns = 0;
  // tap: row `tap_row` of the strip; values (plus `base`) go to tap_h[column] and tap_f[column]
  int tap_row = 0;
  std::int32_t base = 0;
  std::int32_t* tap_h = nullptr;
  std::int32_t* tap_f = nullptr;

  // results, in lane values
  std::int32_t best = 0;
  std::int64_t count = 0;
  std::ptrdiff_t found_row = -1, found_column = -1;
};

using tile_function = void (*)(tile_args&);

/// All kernels compiled for one instruction set.
struct kernel_set {
  const char* name = "";
  int lanes = 0;
  /// Rows per lane R = 1 << index.
  static constexpr int heights = 4;
  tile_function local_linear[3][2][heights] = {};  // [width][plain, locate]
  tile_function local_affine[3][2][heights] = {};
  tile_function global_affine[3][3][heights] = {};  // [width: never 8 bits][plain, locate, tap]
};

const kernel_set& baseline_kernels();
#if defined(__x86_64__)
const kernel_set& avx2_kernels();
const kernel_set& avx512_kernels();
#endif

/// The fastest set this processor runs, or the one named ("baseline", "avx2", "avx512"); nullptr if
/// there is no such or it cannot run here.
const kernel_set* find_kernels(const char* name = nullptr);

}  // namespace align

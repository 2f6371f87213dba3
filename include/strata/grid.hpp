// SPDX-License-Identifier: Apache-2.0
// Topologies (pCoR's): which rank is beside which. Arithmetic alone; ranks are those of a group, a
// domain, or whatever the program counts.
//
//   strata::grid g = strata::grid::balanced(all.size(), 2);   // 4 x 3 of 12
//   if (const auto above = g.shift(all.rank(), 0, -1)) mine.send(all.members()[*above], 0, row);
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace strata {

/// A topology: ranks in a grid of up to four dimensions, the last one fastest. A value: publish()
/// it under a name. Size of a dimension: 0 from the first one that is not used. Nothing here waits,
/// or needs a runtime; different threads may read one at a time.
struct grid {
  std::array<std::uint32_t, 4> extent{};
  std::array<bool, 4> wraps{};  // the ends of this dimension are neighbours

  /// How many dimensions are used.
  [[nodiscard]] unsigned dimensions() const noexcept;
  /// How many ranks there are: the product of the used dimensions. Throws misuse_error if that is
  /// 2^32 or more; so do the following.
  [[nodiscard]] std::uint32_t size() const;
  /// Throws misuse_error for a rank beyond size().
  [[nodiscard]] std::array<std::uint32_t, 4> coordinates(std::uint32_t rank) const;
  /// The rank at these coordinates. Throws misuse_error for other than dimensions() of
  /// them, but for zeros at the end, and for one beyond its extent.
  [[nodiscard]] std::uint32_t rank(std::span<const std::uint32_t> at) const;
  /// The ranks one step away, in each dimension first down, then up; ends that do not wrap have
  /// none. Each once, and never `rank` itself: in a ring of two there is one, in a ring of one
  /// none.
  [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t rank) const;
  /// The rank so many steps up in that dimension, or down if they are negative; nothing beyond an
  /// end that does not wrap. It may be `rank` itself. In a ring of two one step up and one down
  /// lead to the same rank, and are two directions all the same: what an exchange with both sides
  /// needs. (MPI_Cart_shift.) Throws misuse_error for a rank beyond size(), and a dimension beyond
  /// dimensions().
  [[nodiscard]] std::optional<std::uint32_t> shift(std::uint32_t rank, unsigned dimension,
                                                   int steps) const;

  /// A grid of so many ranks whose dimensions are about as large as each other, the largest first;
  /// none wraps. (MPI_Dims_create.) Throws misuse_error for no ranks, and for other than one to
  /// four dimensions.
  [[nodiscard]] static grid balanced(std::uint32_t ranks, unsigned dimensions);
};

}  // namespace strata

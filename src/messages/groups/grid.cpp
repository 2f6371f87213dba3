// SPDX-License-Identifier: Apache-2.0
#include "strata/grid.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "strata/error.hpp"

namespace strata {

unsigned grid::dimensions() const noexcept {
  unsigned n = 0;
  while (n < extent.size() && extent[n] != 0) ++n;
  return n;
}

std::uint32_t grid::size() const {
  std::uint64_t n = 1;
  for (unsigned d = 0; d < dimensions(); ++d) {
    n *= extent[d];  // of two numbers of 32 bits
    if (n > UINT32_MAX) throw misuse_error("a grid of 2^32 ranks or more");
  }
  return static_cast<std::uint32_t>(n);
}

std::array<std::uint32_t, 4> grid::coordinates(std::uint32_t rank) const {
  if (rank >= size())
    throw misuse_error("rank " + std::to_string(rank) + " in a grid of " + std::to_string(size()));
  std::array<std::uint32_t, 4> at{};
  for (unsigned d = dimensions(); d-- > 0; rank /= extent[d]) at[d] = rank % extent[d];
  return at;
}

std::uint32_t grid::rank(std::span<const std::uint32_t> at) const {
  (void)size();
  for (std::size_t d = dimensions(); d < at.size(); ++d) {
    if (at[d] != 0) throw misuse_error("more coordinates than the grid has dimensions");
  }
  std::uint32_t r = 0;
  for (unsigned d = 0; d < dimensions(); ++d) {
    if (d >= at.size() || at[d] >= extent[d]) throw misuse_error("coordinates outside their grid");
    r = r * extent[d] + at[d];
  }
  return r;
}

std::vector<std::uint32_t> grid::neighbours(std::uint32_t rank) const {
  const auto here = coordinates(rank);
  std::vector<std::uint32_t> found;
  for (unsigned d = 0; d < dimensions(); ++d) {
    for (const bool up : {false, true}) {
      const bool at_end = here[d] == (up ? extent[d] - 1 : 0);
      if (at_end && !wraps[d]) continue;
      auto there = here;
      there[d] = at_end ? (up ? 0 : extent[d] - 1) : (up ? here[d] + 1 : here[d] - 1);
      const std::uint32_t r = this->rank(there);
      // In a ring of one or two, both ways lead to the same.
      if (r != rank && std::find(found.begin(), found.end(), r) == found.end()) found.push_back(r);
    }
  }
  return found;
}

std::optional<std::uint32_t> grid::shift(std::uint32_t rank, unsigned dimension, int steps) const {
  auto at = coordinates(rank);
  if (dimension >= dimensions())
    throw misuse_error("dimension " + std::to_string(dimension) + " of a grid of " +
                       std::to_string(dimensions()));
  const std::int64_t length = extent[dimension];
  std::int64_t there = at[dimension] + std::int64_t{steps};
  if (there < 0 || there >= length) {
    if (!wraps[dimension]) return std::nullopt;
    there = (there % length + length) % length;
  }
  at[dimension] = static_cast<std::uint32_t>(there);
  return this->rank(at);
}

namespace {

// The largest r with r^dimensions <= n; n is not 0.
std::uint32_t root_of(std::uint32_t n, unsigned dimensions) noexcept {
  const auto fits = [&](std::uint64_t r) {
    std::uint64_t power = 1;  // of numbers of which the first two have 32 bits at most
    for (unsigned d = 0; d < dimensions && power <= n; ++d) power *= r;
    return power <= n;
  };
  std::uint32_t r = 1;
  while (fits(std::uint64_t{r} + 1)) ++r;
  return r;
}

}  // namespace

// One after the other gets a divisor as near below the root as there is one; what is left is
// divided among the others.
grid grid::balanced(std::uint32_t ranks, unsigned dimensions) {
  grid g;
  if (ranks == 0) throw misuse_error("a grid of no ranks");
  if (dimensions == 0 || dimensions > g.extent.size())
    throw misuse_error("a grid of " + std::to_string(dimensions) + " dimensions: it has one to " +
                       std::to_string(g.extent.size()));
  for (unsigned d = dimensions; d-- > 1;) {
    g.extent[d] = root_of(ranks, d + 1);
    while (ranks % g.extent[d] != 0) --g.extent[d];
    ranks /= g.extent[d];
  }
  g.extent[0] = ranks;
  std::sort(g.extent.begin(), g.extent.begin() + dimensions, std::greater<>());
  return g;
}

}  // namespace strata

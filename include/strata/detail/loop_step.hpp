// SPDX-License-Identifier: Apache-2.0
// A step of a loop or of a reduction: from a position, which is an index or an iterator, so many
// on.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>

namespace strata::detail {

// Calls name their namespace: an iterator's may have functions of the same names.

template <std::integral Index>
constexpr Index after(Index first, std::size_t n) noexcept {
  using number = std::make_unsigned_t<Index>;
  return static_cast<Index>(
      static_cast<number>(static_cast<number>(first) + static_cast<number>(n)));
}
template <std::forward_iterator It>
constexpr It after(It first, std::size_t n) {
  return std::ranges::next(std::move(first), static_cast<std::iter_difference_t<It>>(n));
}

// What a body gets of one position: the index, or what the iterator refers to.
template <class Position>
struct each_at {
  using type = Position&;
};
template <std::forward_iterator It>
struct each_at<It> {
  using type = std::iter_reference_t<It>;
};
// One goes first: a body may have defaults for more.
template <class F, class Position>
concept takes_each = std::invocable<F&, typename each_at<Position>::type>;
template <class F, class Position>
concept takes_parts = !takes_each<F, Position> && std::invocable<F&, Position, Position>;

// f of each of the next n. Returns where they end.
template <std::integral Index, class F>
Index do_each(Index first, std::size_t n, F f) {
  const Index until = detail::after(first, n);
  for (; first < until; ++first) {
    Index i = first;  // f's: it may take a reference
    f(i);
  }
  return until;
}
template <std::forward_iterator It, class F>
It do_each(It first, std::size_t n, F f) {
  for (; n != 0; --n, ++first) f(*first);
  return first;
}

// Returns where the step ends.
template <class Position, class Body>
Position do_step(Position first, std::size_t n, Body& body) {
  static_assert(takes_each<Body, Position> || takes_parts<Body, Position>,
                "the body of parallel_for takes an index, that of parallel_for_each an element; or "
                "two indices or iterators: where a part of the range begins, and where it ends");
  if constexpr (takes_parts<Body, Position>) {
    const Position until = detail::after(first, n);
    std::invoke(body, Position(first), Position(until));
    return until;
  } else {
    return detail::do_each(
        first, n, [&body](auto&& one) { std::invoke(body, std::forward<decltype(one)>(one)); });
  }
}

// Moves `first` to where the step ends.
template <class Position, class T, class Map, class Combine>
T reduce_step(Position& first, std::size_t n, T value, Map& map, Combine& combine) {
  static_assert(takes_each<Map, Position> || takes_parts<Map, Position>,
                "the map of parallel_reduce takes an index or an element; or two indices or "
                "iterators: where a part of the range begins, and where it ends");
  if constexpr (takes_parts<Map, Position>) {
    const Position begin = first;
    first = detail::after(first, n);
    return combine(std::move(value), std::invoke(map, Position(begin), Position(first)));
  } else {
    first = detail::do_each(first, n, [&](auto&& one) {
      value = combine(std::move(value), std::invoke(map, std::forward<decltype(one)>(one)));
    });
    return value;
  }
}

}  // namespace strata::detail

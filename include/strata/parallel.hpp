// SPDX-License-Identifier: Apache-2.0
// Loops and reductions over index ranges, on top of fork2join. All iterations run on the calling
// node: their body refers to its memory. Over several nodes a loop is one of calls
// (strata/task_scope.hpp), each of which may run a loop where it is made.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "strata/fork_join.hpp"
#include "strata/stop_token.hpp"

namespace strata {

/// How finely a loop is cut. The default adapts itself: the range is worked through in small steps,
/// and what is left is cut in two whenever another worker is hungry (lazy binary splitting, A.
/// Tzannes et al., 2010, doi:10.1145/1693453.1693479). A step, once begun, is neither shared nor
/// stopped. So there is mostly nothing to tune. grain{1} is for thousands of iterations and more of
/// which single ones take long (above 10 us, say), and for loops that are to stop soon; a large one
/// for a few thousand iterations of some nanoseconds each.
struct grain {
  /// Iterations of a step: between two looks at whether somebody is hungry, or a stop has been
  /// requested. 0: the range's length / 1024, between 1 and 1024.
  std::size_t step = 0;
};

namespace detail {

// Throw misuse_error: a range ends there, which is beyond the indices of its type.
[[noreturn, gnu::cold]] void refuse_range_end(std::intmax_t last);
[[noreturn, gnu::cold]] void refuse_range_end(std::uintmax_t last);

// Where a range of such indices ends, given as a number of any type.
template <std::integral Index>
class range_end {
 public:
  // As an index. An integer that is none must not become another one.
  template <std::integral Last>
  range_end(Last last) : index_(static_cast<Index>(last)) {
    // + makes numbers of characters.
    if (!std::cmp_equal(+index_, +last)) [[unlikely]]
      refuse(last);
  }
  // What else becomes one.
  template <class Last>
  requires(!std::integral<std::remove_cvref_t<Last>> && std::convertible_to<Last, Index>)
      range_end(Last&& last)
  noexcept(std::is_nothrow_convertible_v<Last, Index>)
      : index_(static_cast<Index>(std::forward<Last>(last))) {}
  operator Index() const noexcept { return index_; }

 private:
  template <class Last>
  [[noreturn, gnu::cold]] static void refuse(Last last) {
    if constexpr (std::is_signed_v<Last>) {
      refuse_range_end(std::intmax_t{last});
    } else {
      refuse_range_end(std::uintmax_t{last});
    }
  }
  Index index_;
};

// Whether another worker waits for this one to share.
inline bool somebody_is_hungry() noexcept {
  const worker& w = this_worker();
  return w.profiling || w.deque.asked();
}

// Unsigned, because the length of a range of signed indices need not fit into their type.
template <std::integral Index>
constexpr std::size_t length_of(Index first, Index last) noexcept {
  using number = std::make_unsigned_t<Index>;
  return static_cast<number>(static_cast<number>(last) - static_cast<number>(first));
}
template <std::integral Index>
constexpr Index advance(Index first, std::size_t n) noexcept {
  using number = std::make_unsigned_t<Index>;
  return static_cast<Index>(
      static_cast<number>(static_cast<number>(first) + static_cast<number>(n)));
}

template <std::integral Index>
std::size_t step_for(Index first, Index last, grain g) noexcept {
  if (g.step != 0) return g.step;
  const std::size_t length = length_of(first, last);
  return std::min<std::size_t>(std::max<std::size_t>(length / 1024, 1), 1024);
}

// One index goes first: a body may have defaults for more.
template <class F, class Index>
concept takes_each = std::invocable<F&, Index&>;
template <class F, class Index>
concept takes_parts = !takes_each<F, Index> && std::invocable<F&, Index, Index>;

template <std::integral Index, class Body>
void do_step(Index first, Index until, Body& body) {
  static_assert(
      takes_each<Body, Index> || takes_parts<Body, Index>,
      "the body of parallel_for takes an index, or two: where a part of the range begins, "
      "and where it ends");
  if constexpr (takes_parts<Body, Index>) {
    body(first, until);
  } else {
    for (; first < until; ++first) {
      Index i = first;  // the body's: it may take a reference
      body(i);
    }
  }
}

template <std::integral Index, class T, class Map, class Combine>
T reduce_step(Index first, Index until, T value, Map& map, Combine& combine) {
  static_assert(takes_each<Map, Index> || takes_parts<Map, Index>,
                "the map of parallel_reduce takes an index, or two: where a part of the range "
                "begins, and where it ends");
  if constexpr (takes_parts<Map, Index>) {
    return combine(std::move(value), map(first, until));
  } else {
    for (; first < until; ++first) {
      Index i = first;
      value = combine(std::move(value), map(i));
    }
    return value;
  }
}

template <std::integral Index, any_stop_token Stop, class Body>
void for_range(Index first, Index last, std::size_t step, const Stop& stop, Body& body) {
  while (first < last) {
    if (stop.stop_requested()) return;
    const std::size_t left = length_of(first, last);
    if (left > step && somebody_is_hungry()) {
      const Index middle = advance(first, left / 2);
      fork2join([&] { for_range(first, middle, step, stop, body); },
                [&] { for_range(middle, last, step, stop, body); });
      return;
    }
    const Index until = advance(first, std::min(step, left));
    do_step(first, until, body);
    first = until;
  }
}

template <std::integral Index, any_stop_token Stop, class T, class Map, class Combine>
T reduce_range(Index first, Index last, std::size_t step, const Stop& stop, T value,
               const T& identity, Map& map, Combine& combine) {
  while (first < last) {
    if (stop.stop_requested()) return value;
    const std::size_t left = length_of(first, last);
    if (left > step && somebody_is_hungry()) {
      const Index middle = advance(first, left / 2);
      auto [a, b] = fork2join(
          [&] {
            return reduce_range(first, middle, step, stop, std::move(value), identity, map,
                                combine);
          },
          [&] {
            return reduce_range(middle, last, step, stop, T(identity), identity, map, combine);
          });
      return combine(std::move(a), std::move(b));
    }
    const Index until = advance(first, std::min(step, left));
    value = reduce_step(first, until, std::move(value), map, combine);
    first = until;
  }
  return value;
}

}  // namespace detail

/// Calls body(i) for each i in [first, last), in any order and possibly at the same time on several
/// workers. Returns when all calls have ended; the caller sees everything they did. An exception of
/// a call is rethrown after the calls in progress have ended; which other calls are made then is
/// not defined. Throws misuse_error outside a runtime and in a fiber, and std::system_error as
/// fork2join. May suspend. Loops within loops nest as deep as forks do.
///
/// The indices are of first's type; last is of any other, and where it is an integer that is no
/// such index, misuse_error is thrown: parallel_for(0, 3'000'000'000, body), (0U, -1, body).
///
/// A body of two indices is called as body(begin, end) instead, once for each step, of which none
/// is empty: for what is to be done once for many iterations.
template <std::integral Index, class Body>
void parallel_for(Index first, std::type_identity_t<detail::range_end<Index>> last, Body&& body,
                  grain g = {}) {
  detail::call_where_room_is([&] {
    detail::for_range(first, Index(last), detail::step_for<Index>(first, last, g),
                      std::stop_token{}, body);
  });
}

/// The same, until a stop is requested on `stop`, a strata::stop_token or a std::stop_token: steps
/// (see grain) not begun by then are skipped, each of those in progress is done to its end, so a
/// body that takes long asks the token itself. Returns as usual, without an exception. Whoever asks
/// the token and sees the stop sees what was done before it was requested.
template <std::integral Index, class Body, detail::any_stop_token Stop>
void parallel_for(Stop stop, Index first, std::type_identity_t<detail::range_end<Index>> last,
                  Body&& body, grain g = {}) {
  detail::call_where_room_is([&] {
    detail::for_range(first, Index(last), detail::step_for<Index>(first, last, g), stop, body);
  });
}

/// Combines map(i) for all i in [first, last): combine(... combine(identity, map(first)) ...,
/// map(last - 1)), with the parentheses placed differently. So combine must be associative and
/// identity its neutral element, but combine need not be commutative: the order of the operands is
/// kept. Floating-point sums can differ in the last bits from run to run. What map and combine have
/// done the caller sees; a call of combine sees what made its two operands. A map of two indices is
/// called as map(begin, end), once for each step, whose iterations it combines itself. Otherwise as
/// parallel_for.
template <std::integral Index, class T, class Map, class Combine>
T parallel_reduce(Index first, std::type_identity_t<detail::range_end<Index>> last, T identity,
                  Map&& map, Combine&& combine, grain g = {}) {
  return detail::call_where_room_is([&] {
    return detail::reduce_range(first, static_cast<Index>(last),
                                detail::step_for<Index>(first, last, g), std::stop_token{},
                                T(identity), identity, map, combine);
  });
}

/// The same, until a stop is requested, as parallel_for: the result then lacks the terms of some
/// steps, each of which is there whole or not at all; ask the token.
template <std::integral Index, class T, class Map, class Combine, detail::any_stop_token Stop>
T parallel_reduce(Stop stop, Index first, std::type_identity_t<detail::range_end<Index>> last,
                  T identity, Map&& map, Combine&& combine, grain g = {}) {
  return detail::call_where_room_is([&] {
    return detail::reduce_range(first, static_cast<Index>(last),
                                detail::step_for<Index>(first, last, g), stop, T(identity),
                                identity, map, combine);
  });
}

}  // namespace strata

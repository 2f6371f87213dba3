// SPDX-License-Identifier: Apache-2.0
// Loops and reductions over index ranges and over what has iterators, on top of fork2join. All
// iterations run on the calling node: their body refers to its memory. Over several nodes a loop is
// one of calls (strata/task_scope.hpp), each of which may run a loop where it is made.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "strata/detail/loop_step.hpp"
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
  if (!(first < last)) return 0;
  return static_cast<number>(static_cast<number>(last) - static_cast<number>(first));
}
template <std::forward_iterator It, std::sentinel_for<It> End>
constexpr std::size_t length_of(It first, End last) {
  return static_cast<std::size_t>(std::ranges::distance(std::move(first), std::move(last)));
}
template <std::ranges::forward_range R>
constexpr std::size_t length_of(R& range) {
  return static_cast<std::size_t>(std::ranges::distance(range));
}

inline std::size_t step_for(std::size_t length, grain g) noexcept {
  if (g.step != 0) return g.step;
  return std::min<std::size_t>(std::max<std::size_t>(length / 1024, 1), 1024);
}

template <class Position, any_stop_token Stop, class Body>
void for_range(Position first, std::size_t left, std::size_t step, const Stop& stop, Body& body) {
  while (left != 0) {
    if (stop.stop_requested()) return;
    if (left > step && somebody_is_hungry()) {
      const std::size_t half = left / 2;
      const Position middle = detail::after(first, half);
      fork2join([&] { detail::for_range(first, half, step, stop, body); },
                [&] { detail::for_range(middle, left - half, step, stop, body); });
      return;
    }
    const std::size_t n = std::min(step, left);
    first = detail::do_step(first, n, body);
    left -= n;
  }
}

template <class Position, any_stop_token Stop, class T, class Map, class Combine>
T reduce_range(Position first, std::size_t left, std::size_t step, const Stop& stop, T value,
               const T& identity, Map& map, Combine& combine) {
  while (left != 0) {
    if (stop.stop_requested()) return value;
    if (left > step && somebody_is_hungry()) {
      const std::size_t half = left / 2;
      const Position middle = detail::after(first, half);
      auto [a, b] = fork2join(
          [&] {
            return detail::reduce_range(first, half, step, stop, std::move(value), identity, map,
                                        combine);
          },
          [&] {
            return detail::reduce_range(middle, left - half, step, stop, T(identity), identity, map,
                                        combine);
          });
      return combine(std::move(a), std::move(b));
    }
    const std::size_t n = std::min(step, left);
    value = detail::reduce_step(first, n, std::move(value), map, combine);
    left -= n;
  }
  return value;
}

template <any_stop_token Stop, class Position, class Body>
void loop(const Stop& stop, Position first, std::size_t length, Body& body, grain g) {
  call_where_room_is([&] { detail::for_range(first, length, step_for(length, g), stop, body); });
}
template <any_stop_token Stop, class Position, class T, class Map, class Combine>
T reduction(const Stop& stop, Position first, std::size_t length, const T& identity, Map& map,
            Combine& combine, grain g) {
  return call_where_room_is([&] {
    return detail::reduce_range(first, length, step_for(length, g), stop, T(identity), identity,
                                map, combine);
  });
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
  detail::loop(std::stop_token(), first, detail::length_of<Index>(first, last), body, g);
}

/// The same, until a stop is requested on `stop`, a strata::stop_token or a std::stop_token: steps
/// (see grain) not begun by then are skipped, each of those in progress is done to its end, so a
/// body that takes long asks the token itself. Returns as usual, without an exception. Whoever asks
/// the token and sees the stop sees what was done before it was requested.
template <std::integral Index, class Body, detail::any_stop_token Stop>
void parallel_for(Stop stop, Index first, std::type_identity_t<detail::range_end<Index>> last,
                  Body&& body, grain g = {}) {
  detail::loop(stop, first, detail::length_of<Index>(first, last), body, g);
}

/// Calls body(x) for each element x of a range: parallel_for_each(v, [](double& x) { x = f(x); }),
/// or parallel_for_each(v, &particle::move). x is what the range's iterators refer to, so a body
/// may change the elements of a container, and nobody may change the container meanwhile. A body of
/// two iterators is called as body(begin, end), once for each step. Otherwise as parallel_for, and
/// throws what the iterators do.
///
/// Iterators, of which several workers use copies at a time, need be no more than forward iterators
/// (a std::list, a std::map). Where they are not random-access ones, giving away half of what is
/// left takes a walk over that half, and a range that is not sized is walked through before the
/// loop: for bodies that take much longer than a step from one element to the next.
template <std::ranges::forward_range R, class Body>
void parallel_for_each(R&& range, Body&& body, grain g = {}) {
  detail::loop(std::stop_token(), std::ranges::begin(range), detail::length_of(range), body, g);
}
/// The same until a stop is requested, as parallel_for.
template <std::ranges::forward_range R, class Body, detail::any_stop_token Stop>
void parallel_for_each(Stop stop, R&& range, Body&& body, grain g = {}) {
  detail::loop(stop, std::ranges::begin(range), detail::length_of(range), body, g);
}
/// The same with what lies between two iterators.
template <std::forward_iterator It, std::sentinel_for<It> End, class Body>
void parallel_for_each(It first, End last, Body&& body, grain g = {}) {
  detail::loop(std::stop_token(), first, detail::length_of(first, last), body, g);
}
/// The same with what lies between two iterators, until a stop is requested.
template <std::forward_iterator It, std::sentinel_for<It> End, class Body,
          detail::any_stop_token Stop>
void parallel_for_each(Stop stop, It first, End last, Body&& body, grain g = {}) {
  detail::loop(stop, first, detail::length_of(first, last), body, g);
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
  return detail::reduction(std::stop_token(), first, detail::length_of<Index>(first, last),
                           identity, map, combine, g);
}

/// The same, until a stop is requested, as parallel_for: the result then lacks the terms of some
/// steps, each of which is there whole or not at all; ask the token.
template <std::integral Index, class T, class Map, class Combine, detail::any_stop_token Stop>
T parallel_reduce(Stop stop, Index first, std::type_identity_t<detail::range_end<Index>> last,
                  T identity, Map&& map, Combine&& combine, grain g = {}) {
  return detail::reduction(stop, first, detail::length_of<Index>(first, last), identity, map,
                           combine, g);
}

/// The same of map(x) for each element x of a range, in its order: parallel_reduce(v, 0.0,
/// std::identity(), std::plus<>()) is the sum of v. x and the iterators: as for parallel_for_each.
/// A map of two iterators is called as map(begin, end), once for each step.
template <std::ranges::forward_range R, class T, class Map, class Combine>
T parallel_reduce(R&& range, T identity, Map&& map, Combine&& combine, grain g = {}) {
  return detail::reduction(std::stop_token(), std::ranges::begin(range), detail::length_of(range),
                           identity, map, combine, g);
}
/// The same until a stop is requested: the result lacks steps then, as with indices.
template <std::ranges::forward_range R, class T, class Map, class Combine,
          detail::any_stop_token Stop>
T parallel_reduce(Stop stop, R&& range, T identity, Map&& map, Combine&& combine, grain g = {}) {
  return detail::reduction(stop, std::ranges::begin(range), detail::length_of(range), identity, map,
                           combine, g);
}
/// The same with what lies between two iterators.
template <std::forward_iterator It, std::sentinel_for<It> End, class T, class Map, class Combine>
T parallel_reduce(It first, End last, T identity, Map&& map, Combine&& combine, grain g = {}) {
  return detail::reduction(std::stop_token(), first, detail::length_of(first, last), identity, map,
                           combine, g);
}
/// The same with what lies between two iterators, until a stop is requested.
template <std::forward_iterator It, std::sentinel_for<It> End, class T, class Map, class Combine,
          detail::any_stop_token Stop>
T parallel_reduce(Stop stop, It first, End last, T identity, Map&& map, Combine&& combine,
                  grain g = {}) {
  return detail::reduction(stop, first, detail::length_of(first, last), identity, map, combine, g);
}

}  // namespace strata

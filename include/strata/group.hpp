// SPDX-License-Identifier: Apache-2.0
// Operations that many threads of a job make together: barrier, broadcast, reductions, prefixes,
// gather, scatter, all-to-all. After pCoR
// (docs/architecture.md#sources).
//
//   strata::run_group(4, [](strata::group& all) {            // four threads on every node
//     const double mine = simulate(all.rank());
//     const double sum = all.all_reduce(mine, std::plus<>());
//     if (all.rank() == 0) std::printf("%f\n", sum);
//   });
//
// Every member calls the same operations in the same order, with the same root and with sizes that
// fit. An operation suspends the calling thread, not its worker; it returns when this member's part
// is done: what it gave may change, and what it gets is there. Whether the others have come so far
// is said by barrier() only. Whoever has got something that was made of another member's part sees
// what that member did before its call.
//
// A group has endpoints of its own, so groups over the same endpoints do not disturb each other,
// nor the messages of the program.
//
// N members; rounds are the longest chain of messages of which each was sent after the one before
// it had been received. Everything here takes O(log N) rounds, except all_to_all() of large blocks
// and all_to_all_any() with large parts: there N - 1 messages of each member carry the blocks
// straight to where they belong. No member gets more than 32 operations ahead of another.
//
// The algorithms are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005, doi:10.1177/1094342005051521, and for the barrier of
// D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", 1988,
// doi:10.1007/BF01379320. Our trees differ: they are cut by rank and not by the distance from the
// root, so that reductions keep the order of the ranks for any root, and blocks need not be turned.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/combination.hpp"
#include "strata/detail/elements.hpp"
#include "strata/detail/group_values.hpp"
#include "strata/detail/value_room.hpp"
#include "strata/message.hpp"
#include "strata/run_group.hpp"  // IWYU pragma: export

namespace strata {

namespace messages {

class member;

}  // namespace messages

/// Members disagree: they call different operations, or with another root, or sizes do not fit, or
/// the group was made from different lists. what() says who sent what. It is noticed when a message
/// comes that does not fit; where everybody waits for a message, nobody notices.
class group_error : public misuse_error {
 public:
  /// For the runtime.
  group_error(unsigned member, const std::string& what) : misuse_error(what), member_(member) {}
  /// The rank of the other one.
  [[nodiscard]] unsigned member() const noexcept { return member_; }

 private:
  unsigned member_;
};

/// A member takes no further part: an operation of it failed, it called leave(), or an exception
/// ended its group. which() is its endpoint, as in the list of members.
class member_left_error : public endpoint_closed_error {
 public:
  /// For the runtime.
  member_left_error(unsigned member, endpoint_id which, const std::string& what)
      : endpoint_closed_error(which, what), member_(member) {}
  /// Its rank.
  [[nodiscard]] unsigned member() const noexcept { return member_; }

 private:
  unsigned member_;
};

/// What one member has sent and received, its group's making included.
struct group_traffic {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;
  /// Of the last operation: the longest chain of messages that ended here. Counts up to 255.
  unsigned longest_chain = 0;
};

/// One member's view of a group. Used by one thread at a time; may be moved between operations.
///
/// Values are trivially copyable; addresses, such as pointers, do not compile as values. Ranges are
/// contiguous (std::vector, std::array, std::span, plain arrays), and every member's has the same
/// size where nothing else is said; sizes may be 0. Where a single value will do, it can be given
/// by itself.
///
/// Reductions combine in the order of the ranks: x0 op x1 op ... op xN-1, with brackets wherever it
/// suits. `op` must be associative, and need not be commutative. With floating-point numbers the
/// brackets show: they depend on N, on the size and, for reduce(), on the root, and on nothing
/// else, so that a repeated run gives the same bits; all_reduce() gives all members the same bits.
///
/// Errors of every operation: group_error, member_left_error, node_lost_error, misuse_error (a root
/// that does not exist, ranges that do not fit within this member), std::bad_alloc, and what `op`
/// throws. After any of them this member has left: its further operations throw member_left_error,
/// and so do those of the others. The operation that failed leaves its results in any state.
class group {
 public:
  /// Called by every member with the same list, each with its own endpoint, which must be in it;
  /// returns when all have done so. Who makes several groups over the same endpoint makes them in
  /// an order that the other members share. Until it returns, messages of the group come to `mine`,
  /// which no receive of the program gets; after it, `mine` is not needed any more. ceil(log2 N)
  /// rounds, and before them one call to the node of the next member in the list, if that is
  /// another one: whether it is there. Throws misuse_error if `mine` is not in the list, or
  /// somebody twice; group_error if the lists differ and that can be seen; node_lost_error;
  /// endpoint_closed_error, to all who make it, if the endpoint of a member has ended when the one
  /// before it in the list (the last one, if it is the first) makes the group. One that ends later,
  /// and has not made it, is waited for as long as its node is in the job, as is one that never
  /// makes it.
  group(endpoint& mine, std::vector<endpoint_id> members);
  /// A group that has been moved from may be destroyed or assigned to, no more.
  group(group&&) noexcept;
  /// As the destructor does, first.
  group& operator=(group&&) noexcept;
  /// Does not wait for the others. When it is destroyed by an exception, this member leaves.
  ~group();

  /// This member's place in the list, from 0.
  [[nodiscard]] unsigned rank() const noexcept;
  /// How many members there are.
  [[nodiscard]] unsigned size() const noexcept;
  /// As given: where the program sends what is for a member. Of run_group() the n-th is what
  /// this_thread::endpoint() is in the thread of rank n.
  [[nodiscard]] std::span<const endpoint_id> members() const noexcept;
  /// For measurements.
  [[nodiscard]] const group_traffic& traffic() const noexcept;

  /// This member takes no further part; operations of the others in which they wait for anybody
  /// throw member_left_error with this text, now or at their next. N - 1 messages. Waits until they
  /// have arrived or their receivers have ended.
  void leave(std::string_view why) noexcept;

  /// Returns when all members have called it; what they did before is visible then. ceil(log2 N)
  /// rounds, as many messages for each member.
  void barrier();

  /// All get the root's values. ceil(log2 N) rounds, N - 1 messages in all. From 64 KiB on the root
  /// deals out pieces, which all exchange: 2 ceil(log2 N) rounds, and each member sends and
  /// receives every byte about twice at most instead of up to log2 N times.
  template <detail::changeable_range R>
  void broadcast(R&& values, unsigned root) {
    broadcast_bytes(detail::room_of(values), root);
  }
  /// The root's value; of other members' it only takes the type.
  template <detail::single_value T>
  [[nodiscard]] T broadcast(const T& value, unsigned root) {
    detail::refuse_addresses<T>();
    T result = value;
    broadcast_bytes(detail::room_of_one(result), root);
    return result;
  }

  /// Element by element: the root's `result` becomes that of all members' `values`. `result` is not
  /// looked at elsewhere; it may be `values` itself. ceil(log2 N) rounds, N - 1 messages in all.
  template <detail::value_range R, detail::changeable_range S,
            detail::combines<std::ranges::range_value_t<R>> Op>
  requires detail::same_values<R, S>
  void reduce(const R& values, S&& result, unsigned root, Op op) {
    reduce_bytes(detail::content_of(values), detail::room_of(result), root,
                 detail::combination_of<std::ranges::range_value_t<R>>(op));
  }
  /// The result at the root, nothing elsewhere.
  template <detail::single_value T, detail::combines<T> Op>
  std::optional<T> reduce(const T& value, unsigned root, Op op) {
    T result = value;
    reduce_bytes(bytes_of(value), detail::room_of_one(result), root, detail::combination_of<T>(op));
    return rank() == root ? std::optional<T>(result) : std::nullopt;
  }

  /// Element by element, in place: all get the result. log2 N rounds and messages for each member;
  /// two rounds more if N is no power of two. From 16 KiB on: twice as many rounds, in which each
  /// member sends every byte about twice instead of log2 N times.
  template <detail::changeable_range R, detail::combines<std::ranges::range_value_t<R>> Op>
  void all_reduce(R&& values, Op op) {
    all_reduce_bytes(detail::room_of(values),
                     detail::combination_of<std::ranges::range_value_t<R>>(op));
  }
  /// The same for one value: returns the result.
  template <detail::single_value T, detail::combines<T> Op>
  [[nodiscard]] T all_reduce(const T& value, Op op) {
    T result = value;
    all_reduce_bytes(detail::room_of_one(result), detail::combination_of<T>(op));
    return result;
  }

  /// Element by element: what all members have in `all`, N blocks of one size, is combined, and
  /// each gets the block of its rank as its `values`, which may be a part of `all`; else `all`
  /// stays as it is. log2 N rounds and messages for each member, in which it sends every byte about
  /// once; two rounds more if N is no power of two.
  template <detail::value_range R, detail::changeable_range S,
            detail::combines<std::ranges::range_value_t<R>> Op>
  requires detail::same_values<R, S>
  void reduce_scatter(const R& all, S&& values, Op op) {
    reduce_scatter_bytes(detail::content_of(all), detail::room_of(values),
                         detail::combination_of<std::ranges::range_value_t<R>>(op));
  }
  /// The same for one value for each member, by rank: returns this member's. How many messages each
  /// gets, for example, where `all` says how many this one is about to send to each.
  template <detail::value_range R, detail::combines<std::ranges::range_value_t<R>> Op>
  [[nodiscard]] std::ranges::range_value_t<R> reduce_scatter(const R& all, Op op) {
    using T = std::ranges::range_value_t<R>;
    return detail::value_by<T>([&](T& result) {
      reduce_scatter_bytes(detail::content_of(all), detail::room_of_one(result),
                           detail::combination_of<T>(op));
    });
  }

  /// What ranks up to and including this one's have, combined; element by element, in place.
  /// ceil(log2 N) rounds, at most as many messages for each member.
  template <detail::changeable_range R, detail::combines<std::ranges::range_value_t<R>> Op>
  void scan(R&& values, Op op) {
    scan_bytes(detail::room_of(values), detail::combination_of<std::ranges::range_value_t<R>>(op));
  }
  /// The same for one value: returns the result.
  template <detail::single_value T, detail::combines<T> Op>
  [[nodiscard]] T scan(const T& value, Op op) {
    T result = value;
    scan_bytes(detail::room_of_one(result), detail::combination_of<T>(op));
    return result;
  }
  /// What the ranks before this one have, combined, becomes `result`, which may be `values` itself.
  /// At rank 0, before which nobody is, it stays as it was. As scan().
  template <detail::value_range R, detail::changeable_range S,
            detail::combines<std::ranges::range_value_t<R>> Op>
  requires detail::same_values<R, S>
  void exclusive_scan(const R& values, S&& result, Op op) {
    exclusive_scan_bytes(detail::content_of(values), detail::room_of(result),
                         detail::combination_of<std::ranges::range_value_t<R>>(op));
  }
  /// The same for one value: returns the result, nothing at rank 0.
  template <detail::single_value T, detail::combines<T> Op>
  [[nodiscard]] std::optional<T> exclusive_scan(const T& value, Op op) {
    T result = value;
    exclusive_scan_bytes(detail::content_of_one(value), detail::room_of_one(result),
                         detail::combination_of<T>(op));
    return rank() != 0 ? std::optional<T>(result) : std::nullopt;
  }

  /// The root's `all`, N times as large, becomes all members' `values` in the order of the ranks.
  /// `all` is not looked at elsewhere. ceil(log2 N) rounds, N - 1 messages in all.
  template <detail::value_range R, detail::changeable_range S>
  requires detail::same_values<R, S>
  void gather(const R& values, S&& all, unsigned root) {
    gather_bytes(detail::content_of(values), detail::room_of(all), root);
  }
  /// All of them at the root, nothing elsewhere.
  template <detail::single_value T>
  [[nodiscard]] std::vector<T> gather(const T& value, unsigned root) {
    return or_leave([&] {
      return detail::vector_by(rank() == root ? size() : 0, value, [&](std::span<std::byte> all) {
        gather_bytes(bytes_of(value), all, root);
      });
    });
  }
  /// Bytes of any size from each: by rank at the root, nothing elsewhere. ceil(log2 N) rounds of up
  /// to two messages, the sizes before the bytes.
  [[nodiscard]] std::vector<std::vector<std::byte>> gather_any(std::span<const std::byte> bytes,
                                                               unsigned root);
  /// The same for any number of values of each.
  template <detail::range_of_no_bytes R>
  [[nodiscard]] std::vector<std::vector<std::ranges::range_value_t<R>>> gather_any(const R& values,
                                                                                   unsigned root) {
    using T = std::ranges::range_value_t<R>;
    return or_leave([&] {
      return detail::elements_of_all<T>(
          gather_any_bytes(detail::content_of(values), root, sizeof(T)));
    });
  }

  /// Everybody's `all`, N times as large, becomes all members' `values` in the order of the ranks.
  /// ceil(log2 N) rounds of up to two messages for each member.
  template <detail::value_range R, detail::changeable_range S>
  requires detail::same_values<R, S>
  void all_gather(const R& values, S&& all) {
    all_gather_bytes(detail::content_of(values), detail::room_of(all));
  }
  /// The same for one value of each: returns all of them, by rank.
  template <detail::single_value T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) {
    return or_leave([&] {
      return detail::vector_by(
          size(), value, [&](std::span<std::byte> all) { all_gather_bytes(bytes_of(value), all); });
    });
  }

  /// Any number of values of each: all of them, by rank. 2 ceil(log2 N) rounds of up to two
  /// messages for each member, the sizes before the values.
  template <detail::value_range R>
  [[nodiscard]] std::vector<std::vector<std::ranges::range_value_t<R>>> all_gather_any(
      const R& values) {
    using T = std::ranges::range_value_t<R>;
    return or_leave([&] {
      return detail::elements_of_all<T>(
          all_gather_any_bytes(detail::content_of(values), sizeof(T)));
    });
  }

  /// The root's `all`, N times as large, is dealt out in the order of the ranks. `all` is not
  /// looked at elsewhere. ceil(log2 N) rounds, N - 1 messages in all.
  template <detail::value_range R, detail::changeable_range S>
  requires detail::same_values<R, S>
  void scatter(const R& all, S&& values, unsigned root) {
    scatter_bytes(detail::content_of(all), detail::room_of(values), root);
  }

  /// The root's parts, one for each member by rank, are dealt out: returns this member's. A part is
  /// any number of values: parts are a std::vector of std::vectors, say, or of std::spans; they are
  /// not looked at elsewhere. 2 ceil(log2 N) rounds, 2 (N - 1) messages in all, the sizes before
  /// the values.
  template <detail::range_of_parts P>
  [[nodiscard]] std::vector<detail::part_value<P>> scatter_any(const P& parts, unsigned root) {
    using T = detail::part_value<P>;
    return or_leave([&] {
      return detail::elements_of<T>(scatter_any_bytes(detail::contents_of(parts), root, sizeof(T)));
    });
  }

  /// `in` becomes what each member, by rank, has for this one; `out` is by rank what this one has
  /// for each. Both have N blocks of one size, and do not overlap. Blocks of up to 256 bytes:
  /// ceil(log2 N) rounds and messages for each member, each of which carries about half of the
  /// blocks. Larger ones: N - 1 messages for each member, each of which carries one block.
  template <detail::value_range R, detail::changeable_range S>
  requires detail::same_values<R, S>
  void all_to_all(const R& out, S&& in) {
    all_to_all_bytes(detail::content_of(out), detail::room_of(in));
  }
  /// Any number of values for each member: `parts` are by rank what this one has for each, as for
  /// scatter_any(); returns what each has for this one. Where no part of any member has more than
  /// 256 bytes: the rounds of all_reduce() for one value and of all_to_all() for small blocks.
  /// Else, after as many for the sizes, up to N - 1 messages for each member, one for each part
  /// that is not empty.
  template <detail::range_of_parts P>
  [[nodiscard]] std::vector<std::vector<detail::part_value<P>>> all_to_all_any(const P& parts) {
    using T = detail::part_value<P>;
    return or_leave([&] {
      return detail::elements_of_all<T>(
          all_to_all_any_bytes(detail::contents_of(parts), sizeof(T)));
    });
  }

  /// Members that give the same color become a group of their own, in which they are in the order
  /// of their keys, those of one key in the order of their ranks here; nothing for whoever gives no
  /// color (std::nullopt). Called by every member, as any operation. The other group's members()
  /// are those of this one, and neither disturbs the other: either may end first. The rounds of
  /// all_gather() and of barrier(); no more are needed to make the groups. Throws std::bad_alloc
  /// too.
  [[nodiscard]] std::optional<group> split(std::optional<unsigned> color, int key = 0);

 private:
  friend class detail::crew;
  explicit group(std::unique_ptr<messages::member> me) noexcept;
  // For what asks for memory around an operation: others wait for who has none before it.
  template <class F>
  auto or_leave(F f) {
    try {
      return f();
    } catch (const std::exception& e) {
      leave(e.what());  // unless the operation has
      throw;
    }
  }
  void broadcast_bytes(std::span<std::byte> values, unsigned root);
  void reduce_bytes(std::span<const std::byte> values, std::span<std::byte> result, unsigned root,
                    const detail::combination& op);
  void all_reduce_bytes(std::span<std::byte> values, const detail::combination& op);
  void reduce_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> values,
                            const detail::combination& op);
  void scan_bytes(std::span<std::byte> values, const detail::combination& op);
  void exclusive_scan_bytes(std::span<const std::byte> values, std::span<std::byte> result,
                            const detail::combination& op);
  void gather_bytes(std::span<const std::byte> values, std::span<std::byte> all, unsigned root);
  // These leave the group where what comes is no whole number of elements.
  using any_bytes = std::vector<std::byte>;
  std::vector<any_bytes> gather_any_bytes(std::span<const std::byte> values, unsigned root,
                                          std::size_t element_bytes);
  std::vector<any_bytes> all_gather_any_bytes(std::span<const std::byte> values,
                                              std::size_t element_bytes);
  any_bytes scatter_any_bytes(const std::vector<std::span<const std::byte>>& parts, unsigned root,
                              std::size_t element_bytes);
  std::vector<any_bytes> all_to_all_any_bytes(const std::vector<std::span<const std::byte>>& parts,
                                              std::size_t element_bytes);
  void all_gather_bytes(std::span<const std::byte> values, std::span<std::byte> all);
  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> values, unsigned root);
  void all_to_all_bytes(std::span<const std::byte> out, std::span<std::byte> in);

  std::unique_ptr<messages::member> me_;
};

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// The best value that any node of the job has found, for branch and bound: every node knows it, a
// little late, and reading it costs a load.
//
//   void search(part p, strata::best_handle<int> all) {       // on any node
//     const strata::best_here<int> best = all.here();         // what that node knows
//     if (p.at_most() <= best.value()) return;                // cannot be better
//     if (p.is_whole()) best.improve(p.value());              // the other nodes will hear of it
//     ...
//   }
//
//   strata::shared_best<int> best(0);                         // on one node
//   scope.spawn(strata::call<search>(p, best.handle()));      // may run on another one
//   scope.sync();
//   int result = best.of_all_nodes();
//
// Values are of up to 8 bytes, and replace each other only by better ones: a node that hears late
// does more than it needs to, and nothing else goes wrong. A handle is a value that travels: in the
// arguments of calls and tokens, in messages, and under a name (`publish("best", best.handle())`).
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "strata/call.hpp"
#include "strata/global_ptr.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"

namespace strata {

namespace detail {

using best_bits = std::uint64_t;

class best_state;  // on the node that has made it

// A best, from anywhere in the job.
struct best_place {
  global_ptr<best_state> where;
  std::uint64_t number = 0;  // which no other one of the job has
  best_bits first = 0;
};

// What the part that knows no types calls of the one that does.
struct best_type {
  bool (*is_worse)(best_bits a, best_bits b);
};

// What one node knows. It orders nothing but itself, which every relaxed load here is about.
class best_cell {
 public:
  explicit best_cell(best_bits first) noexcept : bits_(first) {}
  [[nodiscard]] best_bits load() const noexcept { return bits_.load(std::memory_order_relaxed); }
  // False: what was known is no worse.
  bool improve(best_bits found, const best_type& type) {
    best_bits known = load();
    while (type.is_worse(known, found)) {
      if (bits_.compare_exchange_weak(known, found, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  std::atomic<best_bits> bits_;
};

// The calling node's part of it.
std::shared_ptr<best_cell> best_cell_here(const best_place& p, const best_type& type);
// The calling node has found something that is better than all that it knew.
void tell_best(const best_place& p);

// Its owner's part.
class best_owner {
 public:
  best_owner(best_bits first, const best_type& type);
  ~best_owner();
  best_owner(const best_owner&) = delete;
  best_owner& operator=(const best_owner&) = delete;
  [[nodiscard]] const best_place& place() const noexcept { return place_; }
  [[nodiscard]] const std::shared_ptr<best_cell>& cell() const noexcept;
  [[nodiscard]] best_bits of_all_nodes();

 private:
  std::unique_ptr<best_state> state_;
  object_entry entry_;
  best_place place_;
};

template <class T>
best_bits best_bits_of(const T& value) noexcept {
  best_bits bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T best_value_of(best_bits bits) noexcept {
  std::remove_const_t<T> value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T, class Worse>
struct best_functions {
  static bool is_worse(best_bits a, best_bits b) {
    return Worse()(best_value_of<T>(a), best_value_of<T>(b));
  }
  static constexpr best_type type{&is_worse};
};

template <class T, class Worse>
constexpr bool can_be_best = std::is_trivially_copyable_v<T>&& std::is_default_constructible_v<T> &&
                             sizeof(T) <= sizeof(best_bits) && std::is_empty_v<Worse>;

}  // namespace detail

/// What the node knows that has called best_handle::here(): for all its threads, tasks and fibers,
/// and for no other node. Copies are of the same. It outlives its shared_best; the others hear of
/// no improvement any more then.
template <class T, class Worse = std::less<T>>
class best_here {
 public:
  /// The best that this node has found or heard of. A relaxed load: it never blocks.
  [[nodiscard]] T value() const noexcept { return detail::best_value_of<T>(cell_->load()); }
  /// True: x is better than all that this node knew, so that value() is x now, or better; and the
  /// others are being told. What is equal, or worse, changes nothing. Awaits no answer, and may be
  /// called by fibers, and again and again: of what comes while a node is being told it hears the
  /// last. No node's workers are needed for that, whatever they compute (but with polling reception
  /// a node hears when one of them looks). Outside a runtime throws misuse_error, and only value()
  /// changes. A node that is lost is told to whoever waits for something. Orders no other memory.
  bool improve(const T& x) const {
    using functions = detail::best_functions<T, Worse>;
    if (!cell_->improve(detail::best_bits_of(x), functions::type)) return false;
    detail::tell_best(place_);
    return true;
  }

 private:
  template <class, class>
  friend class best_handle;
  template <class, class>
  friend class shared_best;
  best_here(std::shared_ptr<detail::best_cell> cell, const detail::best_place& p) noexcept
      : cell_(std::move(cell)), place_(p) {}

  std::shared_ptr<detail::best_cell> cell_;
  detail::best_place place_;
};

/// A reference to a shared_best on some node.
template <class T, class Worse = std::less<T>>
class best_handle {
 public:
  /// To none.
  constexpr best_handle() noexcept = default;
  /// Where the shared_best is. Never blocks.
  [[nodiscard]] node_id_t node() const noexcept { return place_.where.node(); }
  /// What the calling node knows. Where the shared_best is on another node, the first time on this
  /// one suspends until that has answered; otherwise never blocks, may be used in a fiber, and
  /// takes some 100 ns: once for a task, not for each look. Throws resource_ended_error if the
  /// shared_best has ended, node_lost_error, node_left_error if its node has left, std::bad_alloc,
  /// misuse_error for a handle to none, outside a runtime and, where the other node has to be
  /// asked, in a fiber.
  [[nodiscard]] best_here<T, Worse> here() const {
    if (!place_.where) detail::refuse_no_resource();
    return {detail::best_cell_here(place_, detail::best_functions<T, Worse>::type), place_};
  }

 private:
  template <class, class>
  friend class shared_best;
  explicit best_handle(const detail::best_place& p) noexcept : place_(p) {}

  detail::best_place place_;
};

/// The best of a job: the greatest value, or the least with std::greater<>. T is trivially copyable
/// and has a default constructor, and has 8 bytes at most; Worse is a type without members whose
/// call of (a, b) says that b is better, a strict weak order: a short function that calls nothing
/// of the runtime, as threads of the runtime that receive messages call it too, and what it throws
/// there makes the computation fail. It belongs to the node that makes it,
/// through which every improvement goes, and lives until nobody uses handles to it any more: longer
/// than the calls that have got one. (The incumbent of branch and bound: A. H. Land and A. G. Doig,
/// 1960, doi:10.2307/1910129.)
template <class T, class Worse = std::less<T>>
class shared_best {
  static_assert(detail::can_be_best<T, Worse>,
                "a shared_best is of a trivially copyable type of 8 bytes at most with a default "
                "constructor, and its order of a type without members");

 public:
  /// `first` is what all nodes know at the beginning. Throws std::bad_alloc, and misuse_error
  /// outside a runtime.
  explicit shared_best(const T& first)
      : owner_(detail::best_bits_of(first), detail::best_functions<T, Worse>::type) {}
  /// Waits until nobody uses it from elsewhere just then; the other nodes hear of its end later. In
  /// a fiber, which cannot wait, and where a node is lost, its memory stays as long as the process
  /// if somebody does. Never throws.
  ~shared_best() = default;
  shared_best(const shared_best&) = delete;
  shared_best& operator=(const shared_best&) = delete;

  /// Never blocks.
  [[nodiscard]] best_handle<T, Worse> handle() const noexcept {
    return best_handle<T, Worse>(owner_.place());
  }
  /// What its own node knows. Never blocks.
  [[nodiscard]] best_here<T, Worse> here() const noexcept {
    return {owner_.cell(), owner_.place()};
  }
  /// That node's value. Never blocks.
  [[nodiscard]] T value() const noexcept { return detail::best_value_of<T>(owner_.cell()->load()); }
  /// The best of what all nodes know, by asking those that have used a handle: nothing is left out
  /// that an improve() found which has returned, as visible to the caller. Suspends for a call to
  /// each at once. Of nodes that have left what this one has heard by then counts: where nodes
  /// leave, let the calls return what they have found. Throws node_lost_error, std::bad_alloc, and
  /// misuse_error in a fiber where there are others to ask.
  [[nodiscard]] T of_all_nodes() { return detail::best_value_of<T>(owner_.of_all_nodes()); }

 private:
  detail::best_owner owner_;
};

}  // namespace strata

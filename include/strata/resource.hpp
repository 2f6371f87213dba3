// SPDX-License-Identifier: Apache-2.0
// Named objects that the threads of a job share (pCoR's resources: requirement P1). An object lives
// on the node that made it; whoever knows its name calls functions on it from anywhere.
//
//   strata::named<counter> c("hits");                              // on one node
//   auto hits = strata::resource<counter>::await("hits");          // on any other
//   long n = hits.call<&counter::add>(3);                          // made where the object is
//
// Semaphores, locks, barriers, domains and grids of that kind stand below.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "strata/global_ptr.hpp"
#include "strata/message.hpp"
#include "strata/mutex.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"

namespace strata {

namespace detail {
template <auto Function, class T, class... Arguments>
auto apply_to_resource(global_ptr<T> object, const Arguments&... arguments) {
  return std::invoke(Function, *object.local(), arguments...);
}
}  // namespace detail

/// A reference to an object on some node: a value that can travel.
template <class T>
class resource {
 public:
  constexpr resource() noexcept = default;
  explicit resource(global_ptr<T> where) noexcept : where_(where) {}

  /// The one with this name. Throws misuse_error if there is none, or it is not a T.
  static resource find(std::string_view name) {
    if (const auto found = find_name<resource>(name)) return *found;
    throw misuse_error("there is no resource \"" + std::string(name) + "\"");
  }
  /// The same; suspends until there is one.
  static resource await(std::string_view name) { return await_name<resource>(name); }

  [[nodiscard]] node_id_t node() const noexcept { return where_.node(); }
  /// F(object, arguments...) on its node, F a function or a member function known at compile time;
  /// it may suspend. Returns its result; throws as strata::call does. The object must exist.
  template <auto Function, class... Arguments>
  auto call(const Arguments&... arguments) const {
    return strata::call<&detail::apply_to_resource<Function, T, Arguments...>>(
        on_node{node()}, where_, arguments...);
  }

 private:
  global_ptr<T> where_;
};

/// An object with a name, on the node of its maker. The name is withdrawn at its end; calls must be
/// over by then.
template <class T>
class named {
 public:
  /// Makes T(arguments...) known. Throws as publish() does.
  template <class... Arguments>
  explicit named(std::string_view name, Arguments&&... arguments)
      : name_(name), object_(std::forward<Arguments>(arguments)...) {
    publish(name_, ref());
  }
  ~named() {
    try {
      withdraw(name_);
    } catch (...) {
      // A node is lost, and the job with it: nobody looks the name up any more.
    }
  }
  named(const named&) = delete;
  named& operator=(const named&) = delete;

  T& operator*() noexcept { return object_; }
  T* operator->() noexcept { return &object_; }
  [[nodiscard]] resource<T> ref() { return resource<T>(to_global(&object_)); }

 private:
  std::string name_;
  T object_;
};

// ---- synchronizers ----

/// A semaphore for the whole job: `named<counting_semaphore<>> s("slots", 4)`, and elsewhere
/// semaphore_handle::await("slots"). Each operation is a call to its node.
class semaphore_handle {
 public:
  explicit semaphore_handle(resource<counting_semaphore<>> s) noexcept : s_(s) {}
  static semaphore_handle await(std::string_view name) {
    return semaphore_handle(resource<counting_semaphore<>>::await(name));
  }
  /// Suspends until there is a unit. What was done before the release of it is visible.
  void acquire() { s_.call<&take>(); }
  [[nodiscard]] bool try_acquire() { return s_.call<&try_take>(); }
  void release(std::ptrdiff_t n = 1) { s_.call<&put_back>(n); }

 private:
  static void take(counting_semaphore<>& s) { s.acquire(); }
  static bool try_take(counting_semaphore<>& s) { return s.try_acquire(); }
  static void put_back(counting_semaphore<>& s, std::ptrdiff_t n) { s.release(n); }
  resource<counting_semaphore<>> s_;
};

/// A lock for the whole job, for std::lock_guard and std::unique_lock: a semaphore of one unit,
/// `named<counting_semaphore<>> l("lock", 1)`.
class lock_handle {
 public:
  explicit lock_handle(semaphore_handle s) noexcept : s_(s) {}
  static lock_handle await(std::string_view name) {
    return lock_handle(semaphore_handle::await(name));
  }
  void lock() { s_.acquire(); }
  [[nodiscard]] bool try_lock() { return s_.try_acquire(); }
  void unlock() { s_.release(); }

 private:
  semaphore_handle s_;
};

/// A barrier for the whole job: `named<barrier<>> b("phase", n)`. One call to its node for each
/// arrival; where many threads of many nodes meet often, a group's barrier costs less.
class barrier_handle {
 public:
  explicit barrier_handle(resource<barrier<>> b) noexcept : b_(b) {}
  static barrier_handle await(std::string_view name) {
    return barrier_handle(resource<barrier<>>::await(name));
  }
  void arrive_and_wait() { b_.call<&meet>(); }

 private:
  static void meet(barrier<>& b) { b.arrive_and_wait(); }
  resource<barrier<>> b_;
};

// ---- domains and topologies ----

/// A set of endpoints that changes while the program runs: `named<domain> d("workers")`.
class domain {
 public:
  /// Its rank: the lowest that is free. Joining twice changes nothing.
  std::uint32_t join(endpoint_id who);
  /// True if it was a member.
  bool leave(endpoint_id who);
  [[nodiscard]] std::uint32_t size();
  /// Suspends until it has at least n members.
  void await_size(std::uint32_t n);

  /// A part of the members, by rank; none where a rank is free.
  struct page {
    static constexpr std::uint32_t length = 128;
    std::uint32_t ranks = 0;  // of the whole domain
    std::array<endpoint_id, length> members{};
  };
  [[nodiscard]] page members_from(std::uint32_t rank);

 private:
  mutex mutex_;
  condition_variable changed_;
  std::vector<endpoint_id> by_rank_;
  std::uint32_t members_ = 0;
};

/// A domain as other nodes use it. Every function is a call to the domain's node.
class domain_handle {
 public:
  explicit domain_handle(resource<domain> d) noexcept : d_(d) {}
  static domain_handle await(std::string_view name) {
    return domain_handle(resource<domain>::await(name));
  }
  std::uint32_t join(endpoint_id who) { return d_.call<&domain::join>(who); }
  bool leave(endpoint_id who) { return d_.call<&domain::leave>(who); }
  [[nodiscard]] std::uint32_t size() { return d_.call<&domain::size>(); }
  void await_size(std::uint32_t n) { d_.call<&domain::await_size>(n); }
  /// By rank; none where a rank is free.
  [[nodiscard]] std::vector<endpoint_id> members();

 private:
  resource<domain> d_;
};

/// A topology: ranks in a grid of up to four dimensions, the last one fastest. A value: publish()
/// it under a name. Size of a dimension: 0 from the first one that is not used.
struct grid {
  std::array<std::uint32_t, 4> extent{};
  std::array<bool, 4> wraps{};  // the ends of this dimension are neighbours

  [[nodiscard]] unsigned dimensions() const noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept;
  /// Throws misuse_error for a rank beyond size().
  [[nodiscard]] std::array<std::uint32_t, 4> coordinates(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t rank(std::span<const std::uint32_t> at) const;
  /// The ranks one step away, in each dimension first down, then up; ends that do not wrap have
  /// none.
  [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t rank) const;
};

}  // namespace strata

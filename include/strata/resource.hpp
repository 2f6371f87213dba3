// SPDX-License-Identifier: Apache-2.0
// Named objects that the threads of a job share (pCoR's resources). An object lives
// on the node that made it; whoever knows its name calls functions on it from anywhere.
//
//   strata::named<counter> c("hits");                              // on one node
//   auto hits = strata::resource<counter>::await("hits");          // on any other
//   long n = hits.call<&counter::add>(3);                          // made where the object is
//
// Who calls too late learns that the object has ended; an object does not end under a call. Every
// call suspends the caller until it has been made, if the object is on another node; on its own
// node it suspends if the function does. Here and below, functions of handles are such calls.
//
// Semaphores, locks, barriers, domains and grids of that kind stand below; tasks in
// strata/shared_task.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/parking.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/global_ptr.hpp"
#include "strata/message.hpp"
#include "strata/mutex.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"

namespace strata {

/// A call on an object that has ended. Look its name up again, if another object may have it now.
class resource_ended_error : public error {
 public:
  resource_ended_error(node_id_t node, const std::string& what) : error(what), node_(node) {}
  /// Where it was.
  [[nodiscard]] node_id_t node() const noexcept { return node_; }

 private:
  node_id_t node_;
};

namespace messages {
class named_objects;
}

namespace detail {

// That an object of this node has a name: from here on its number leads to it.
class object_entry {
 public:
  // Throws misuse_error outside a runtime.
  explicit object_entry(void* object);
  ~object_entry();
  object_entry(const object_entry&) = delete;
  object_entry& operator=(const object_entry&) = delete;
  // Also of the publication of its name.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  // Nobody calls a function on it from now on; suspends until no call is in progress. False: one
  // is, and may be so for ever (named_objects::end()).
  [[nodiscard]] bool end() noexcept;

 private:
  std::shared_ptr<messages::named_objects> among_;  // null: it has ended
  std::uint64_t number_;
};

// A call in progress on an object of this node. number 0: of one without a name.
class held_object {
 public:
  held_object(std::uint64_t number, void* object);
  ~held_object();
  held_object(const held_object&) = delete;
  held_object& operator=(const held_object&) = delete;
  [[nodiscard]] void* get() const noexcept { return object_; }  // null: it has ended

 private:
  std::uint64_t number_;
  void* object_;
};

// What a call brings home: errors travel as text, and this one shall keep its type.
template <class R>
struct object_answer {
  bool exists = false;
  R value{};
  // Of an object: for cereal (strata/serialize.hpp).
  template <class Archive>
  void serialize(Archive& a) {
    a(exists, value);
  }
};
template <>
struct object_answer<void> {
  bool exists = false;
};

template <auto Function, class T, class... Arguments>
auto apply_to_resource(global_ptr<T> where, std::uint64_t number, const Arguments&... arguments) {
  using result = std::decay_t<std::invoke_result_t<decltype(Function), T&, const Arguments&...>>;
  static_assert(refuse_addresses<result>());
  const held_object held(number, where.local());
  auto* const object = static_cast<T*>(held.get());
  if (object == nullptr) return object_answer<result>{};
  if constexpr (std::is_void_v<result>) {
    std::invoke(Function, *object, arguments...);
    return object_answer<result>{true};
  } else {
    return object_answer<result>{true, std::invoke(Function, *object, arguments...)};
  }
}

// park(), for what threads of other nodes may have to do: the loss of a node ends it as unpark()
// does, and from then on this throws node_lost_error instead of waiting.
unparked park_in_job(const parking& how);
// Throws node_lost_error if the job has lost a node.
void require_whole_job();

[[noreturn, gnu::cold]] void refuse_ended_resource(node_id_t node);
[[noreturn, gnu::cold]] void refuse_no_resource();

}  // namespace detail

template <class T>
class named;

/// A reference to an object on some node: a value that can travel.
template <class T>
class resource {
 public:
  /// To none.
  constexpr resource() noexcept = default;
  /// To one without a name, which has to exist whenever a call is made.
  explicit resource(global_ptr<T> where) noexcept : where_(where) {}

  /// The one with this name. Suspends as find_name() does. Throws misuse_error if there is none, or
  /// it is not a T; node_lost_error.
  static resource find(std::string_view name) {
    if (const auto found = find_name<resource>(name)) return *found;
    throw misuse_error("there is no resource \"" + std::string(name) + "\"");
  }
  /// The same; suspends until there is one.
  static resource await(std::string_view name) { return await_name<resource>(name); }
  /// The same, for that long at most: see await_name_for().
  template <class Rep, class Period>
  static std::optional<resource> await_for(std::string_view name,
                                           const std::chrono::duration<Rep, Period>& time) {
    return await_name_for<resource>(name, time);
  }

  /// Where it is. Never blocks.
  [[nodiscard]] node_id_t node() const noexcept { return where_.node(); }
  /// F(object, arguments...) on its node, F a function or a member function known at compile time;
  /// it may suspend, and the object does not end meanwhile. Arguments and results: as for
  /// strata::call(). Suspends the caller until the result is
  /// back, which it returns; what was done there is visible. Throws as strata::call() does, that is
  /// node_lost_error if the object's node has left the job, and from another node, whichever node
  /// is lost; resource_ended_error, and nothing has been called, once the end of its named<T> has
  /// begun; misuse_error for a reference to none. On the object's own node the function is called
  /// as any other: the loss of a node ends its waits by handles, for tasks and for domains, and no
  /// others. (A handle may be one of a part of the object:
  /// semaphore_handle(resource(to_global(&s))).)
  template <auto Function, class... Arguments>
  auto call(const Arguments&... arguments) const {
    if (!where_) detail::refuse_no_resource();
    auto answer = strata::call<&detail::apply_to_resource<Function, T, Arguments...>>(
        on_node{node()}, where_, number_, arguments...);
    if (!answer.exists) detail::refuse_ended_resource(node());
    if constexpr (requires { answer.value; }) return std::move(answer.value);
  }

 private:
  friend class named<T>;
  resource(global_ptr<T> where, std::uint64_t number) noexcept : where_(where), number_(number) {}

  global_ptr<T> where_;
  std::uint64_t number_ = 0;  // of its entry; 0: it has no name
};

/// An object with a name, on the node of its maker.
template <class T>
class named {
 public:
  /// Makes T(arguments...), and makes it known under `name`. Suspends until it is known. Throws as
  /// publish() does, and what T's constructor throws. The object exists before its name does: where
  /// the name cannot be had it is destroyed again, and what it has done is done.
  template <class... Arguments>
  explicit named(std::string_view name, Arguments&&... arguments)
      : name_(detail::checked_name(name)),
        object_(std::make_unique<T>(std::forward<Arguments>(arguments)...)),
        entry_(object_.get()) {
    detail::published_value v = detail::published(ref());
    v.publication = entry_.number();
    detail::publish_value(name_, v);
  }
  /// Withdraws the name, unless somebody has, and then waits for the calls that are in progress on
  /// the object: suspends, or blocks a thread from outside the runtime. Whoever waits within such a
  /// call, for a unit of a semaphore, say, has to get what it waits for; so an object is not ended
  /// by a call on itself. What the calls have done is visible.
  ///
  /// Never throws. Where the name cannot be withdrawn, outside the runtime, in a fiber or because a
  /// node is lost, it may still be found; calls throw resource_ended_error all the same. If a node
  /// is lost while calls are in progress, which then may never end, or a fiber, which cannot wait,
  /// ends this meanwhile, the object is left to them, and its destructor is not called.
  ~named() {
    try {
      (void)detail::withdraw_value(name_, entry_.number());
    } catch (const std::exception&) {  // see above
    }
    if (!entry_.end()) (void)object_.release();
  }
  named(const named&) = delete;
  named& operator=(const named&) = delete;

  /// For threads of its own node. Never block.
  T& operator*() noexcept { return *object_; }
  T* operator->() noexcept { return object_.get(); }
  /// Throws misuse_error outside a runtime. Never blocks.
  [[nodiscard]] resource<T> ref() { return resource<T>(to_global(object_.get()), entry_.number()); }

 private:
  const detail::resource_name name_;
  std::unique_ptr<T> object_;
  detail::object_entry entry_;
};

// ---- synchronizers ----
//
// When the job loses a node, whoever waits by a handle, on whichever node, throws node_lost_error,
// which names it. What threads of that node held never comes back: a lock stays locked, and whoever
// has to wait for it from then on is told at once; the job is about to end. On the synchronizer's
// own node all that need not wait is done as ever, so what is held there can be given back; on
// other nodes nothing is, as every call throws. Who uses the object itself, and not a handle, waits
// for threads of its own node, and is not told.

/// A semaphore for the whole job: `named<counting_semaphore<>> s("slots", 4)`, and elsewhere
/// semaphore_handle::await("slots"). Each operation is a call to its node, and throws as that does.
class semaphore_handle {
 public:
  /// Of a semaphore that is known already.
  explicit semaphore_handle(resource<counting_semaphore<>> s) noexcept : s_(s) {}
  /// Suspends until there is one with this name.
  static semaphore_handle await(std::string_view name) {
    return semaphore_handle(resource<counting_semaphore<>>::await(name));
  }
  /// Suspends until there is a unit. What was done before the release of it is visible. Throws
  /// node_lost_error, without one, when a node is lost.
  void acquire() { s_.call<&take>(); }
  /// Suspends for the call alone. False: there is none.
  [[nodiscard]] bool try_acquire() { return s_.call<&try_take>(); }
  /// Suspends until there is a unit, for that long at most, and for the call. False: there was none
  /// in time. The time is that of the semaphore's node, which decides: who has waited in vain takes
  /// no unit along. Throws as acquire(), and std::system_error or std::bad_alloc (from another node
  /// remote_error) where there is no thread or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& time) {
    return take_until(detail::deadline_after(time));
  }
  /// The same until `time` at the latest, on the caller's clock.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return take_until(ns); });
  }
  /// Suspends for the call alone. Throws misuse_error for a negative number.
  void release(std::ptrdiff_t n = 1);

 private:
  static void take(counting_semaphore<>& s) { (void)take_within(s, INT64_MAX); }
  static bool take_within(counting_semaphore<>& s, std::int64_t limit_ns) {
    const std::int64_t deadline_ns = detail::deadline_after(std::chrono::nanoseconds(limit_ns));
    return s.core_.acquire_by(&detail::park_in_job, deadline_ns) == detail::unparked::woken;
  }
  bool take_until(std::int64_t deadline_ns) {
    return s_.call<&take_within>(detail::time_until(deadline_ns));
  }
  static bool try_take(counting_semaphore<>& s) { return s.try_acquire(); }
  static void put_back(counting_semaphore<>& s, std::ptrdiff_t n) { s.release(n); }
  resource<counting_semaphore<>> s_;
};

/// A lock for the whole job, for std::lock_guard and std::unique_lock: a semaphore of one unit,
/// `named<counting_semaphore<>> l("lock", 1)`.
class lock_handle {
 public:
  /// Of a semaphore of one unit.
  explicit lock_handle(semaphore_handle s) noexcept : s_(s) {}
  /// Suspends until there is one with this name.
  static lock_handle await(std::string_view name) {
    return lock_handle(semaphore_handle::await(name));
  }
  /// As acquire(), try_acquire() and its kin, and release() of semaphore_handle. Who is lost with
  /// its node leaves the lock held: lock() throws node_lost_error in all who wait for it then or
  /// later, try_lock() has it never again.
  void lock() { s_.acquire(); }
  [[nodiscard]] bool try_lock() { return s_.try_acquire(); }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return s_.try_acquire_for(time);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return s_.try_acquire_until(time);
  }
  void unlock() { s_.release(); }

 private:
  semaphore_handle s_;
};

/// A barrier for the whole job: `named<barrier<>> b("phase", n)`. One call to its node for each
/// arrival; where many threads of many nodes meet often, a group's barrier costs less.
class barrier_handle {
 public:
  /// Of a barrier that is known already.
  explicit barrier_handle(resource<barrier<>> b) noexcept : b_(b) {}
  /// Suspends until there is one with this name.
  static barrier_handle await(std::string_view name) {
    return barrier_handle(resource<barrier<>>::await(name));
  }
  /// Suspends until all have arrived, whose work before it is visible then. Throws node_lost_error
  /// when a node is lost: having arrived, if it has waited; if that is known already, it has not.
  void arrive_and_wait() { b_.call<&meet>(); }

 private:
  static void meet(barrier<>& b) {
    detail::require_whole_job();
    b.core_.wait(b.core_.arrive(1), &detail::park_in_job);
  }
  resource<barrier<>> b_;
};

// ---- domains and topologies ----

/// A set of endpoints that changes while the program runs: `named<domain> d("workers")`. Members
/// leave, or their node does: endpoints of a node that has left the job are members no more, and
/// their ranks are free. One that merely ends stays a member until it leaves. All functions may be
/// called by any thread; they suspend only while others are just at it.
class domain {
 public:
  /// Its rank: the lowest that is free. Joining twice changes nothing. Throws misuse_error for no
  /// endpoint, and for one of a node that has left.
  std::uint32_t join(endpoint_id who);
  /// True if it was a member.
  bool leave(endpoint_id who);
  /// Its members now.
  [[nodiscard]] std::uint32_t size();
  /// Suspends until it has at least n members. Throws node_lost_error when a node is lost.
  void await_size(std::uint32_t n);

  /// A part of the members, by rank; none where a rank is free.
  struct page {
    static constexpr std::uint32_t length = 128;
    std::uint32_t ranks = 0;  // of the whole domain
    std::array<endpoint_id, length> members{};
  };
  /// From this rank on; empty beyond the last one.
  [[nodiscard]] page members_from(std::uint32_t rank);

 private:
  // With the mutex, at the beginning of every function.
  void drop_those_who_have_left();
  void drop(endpoint_id& member);

  mutex mutex_;
  // How often somebody has joined, changed with the mutex; those who wait for members wait here.
  std::atomic<std::uint32_t> joins_{0};
  std::vector<endpoint_id> by_rank_;
  std::uint32_t members_ = 0;
};

/// A domain as other nodes use it. Every function is a call to the domain's node, and throws as
/// that does; members() is one for every 128 ranks.
class domain_handle {
 public:
  /// Of a domain that is known already.
  explicit domain_handle(resource<domain> d) noexcept : d_(d) {}
  /// Suspends until there is one with this name.
  static domain_handle await(std::string_view name) {
    return domain_handle(resource<domain>::await(name));
  }
  /// As those of domain.
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
};

}  // namespace strata

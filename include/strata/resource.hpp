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
// node it suspends if the function does. Functions of handles (strata/synchronizers.hpp,
// domain.hpp, shared_task.hpp) are such calls.
#pragma once
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "strata/detail/address.hpp"
#include "strata/detail/parking.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/global_ptr.hpp"
#include "strata/remote_thread.hpp"

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
  // mark: see named_objects::enter(). Throws misuse_error outside a runtime.
  explicit object_entry(void* object, const void* mark = nullptr);
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
  R value = R();
  // Of an object: for cereal (strata/serialize.hpp).
  template <class Archive>
  void serialize(Archive& a) {
    a(exists, value);
  }
};
// Of one that begins as nothing.
template <class R>
requires(std::is_trivially_copyable_v<R> &&
         !std::is_default_constructible_v<R>) struct object_answer<R> {
  object_answer() noexcept {}
  object_answer(bool e, R&& v) : exists(e), value(std::move(v)) {}
  bool exists = false;
  union {
    R value;  // if it exists
  };
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
    return object_answer<result>{true, result(std::invoke(Function, *object, arguments...))};
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
  /// node_left_error if the object's node has left the job, and from another node, whichever node
  /// is lost, node_lost_error; resource_ended_error, and nothing has been called, once the end of
  /// its named<T> has begun; misuse_error for a reference to none. On the object's own node the
  /// function is called as any other: the loss of a node ends its waits by handles, for tasks and
  /// for domains, and no others. (A handle may be one of a part of the object:
  /// semaphore_handle(resource(to_global(&s))).)
  template <auto Function, class... Arguments>
  auto call(const Arguments&... arguments) const {
    static_assert(std::is_invocable_v<decltype(Function), T&, const Arguments&...>,
                  "resource<T>::call<f>(arguments...): f cannot be called with a T& and these "
                  "arguments");
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
  /// the name cannot be had it is destroyed again, and what it has done is done. If that is because
  /// a node is lost others may know the name already: then this ends as the destructor does.
  template <class... Arguments>
  explicit named(std::string_view name, Arguments&&... arguments)
      : name_(detail::checked_name(name)),
        object_(std::make_unique<T>(std::forward<Arguments>(arguments)...)),
        entry_(object_.get()) {
    try {
      detail::published_value v = detail::published(ref());
      v.publication = entry_.number();
      detail::publish_value(name_, v);
    } catch (...) {  // others may know the name all the same
      end();
      throw;
    }
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
    end();
  }
  named(const named&) = delete;
  named& operator=(const named&) = delete;

  /// For threads of its own node. Never block.
  T& operator*() noexcept { return *object_; }
  T* operator->() noexcept { return object_.get(); }
  /// Throws misuse_error outside a runtime. Never blocks.
  [[nodiscard]] resource<T> ref() { return resource<T>(to_global(object_.get()), entry_.number()); }

 private:
  // Waits for the calls in progress; where it cannot, the object is left to them.
  void end() noexcept {
    if (!entry_.end()) (void)object_.release();
  }

  const detail::resource_name name_;
  std::unique_ptr<T> object_;
  detail::object_entry entry_;
};

}  // namespace strata

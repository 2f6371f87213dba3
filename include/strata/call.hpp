// SPDX-License-Identifier: Apache-2.0
// Fork-join across nodes: a call whose function is known at compile time and whose arguments are
// values can run on another node.
//
//   long fib(int n) {
//     if (n < 2) return n;
//     auto [a, b] = strata::fork2join(strata::call<fib>(n - 1), strata::call<fib>(n - 2));
//     return a + b;
//   }
//
// So can children of a task_scope. A lambda that captures by reference stays on its node: its type
// says that it cannot travel. Arguments and results that are addresses (pointers,
// std::reference_wrapper, std::span, std::string_view) do not compile. Values travel as they are.
// Objects do with strata/serialize.hpp: strings, containers, types with a function serialize(), of
// any size. They become bytes when a call is taken by another node; one that its own node makes is
// a plain call.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strata/detail/address.hpp"
#include "strata/detail/object_trip.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/value_room.hpp"
#include "strata/detail/worker.hpp"
#include "strata/fork_join.hpp"
#include "strata/global_ptr.hpp"

namespace strata {

namespace detail {

// Values one after the other; trivially copyable, which std::tuple is not.
template <class... Values>
struct value_list {
  template <class Call>
  decltype(auto) apply(Call&& call) const {
    return call();
  }
  void pack(std::byte*) const {}
  void unpack(const std::byte*) {}
};
template <class First, class... Rest>
struct value_list<First, Rest...> {
  First first;
  [[no_unique_address]] value_list<Rest...> rest;

  template <class Call>
  decltype(auto) apply(Call&& call) const {
    return rest.apply([&](const Rest&... others) -> decltype(auto) {
      return std::forward<Call>(call)(first, others...);
    });
  }
  void pack(std::byte* out) const {
    std::memcpy(out, std::addressof(first), sizeof(First));
    rest.pack(out + sizeof(First));
  }
  void unpack(const std::byte* in) {
    fill_from(first, in);
    rest.unpack(in + sizeof(First));
  }
};

// If the first argument is an integer and Function takes only the others, that integer is a node,
// and the call is made there at once.
template <auto Function, class... Arguments>
inline constexpr bool begins_with_node = false;
template <auto Function, node_number First, class... Rest>
inline constexpr bool begins_with_node<Function, First, Rest...> =
    !std::is_invocable_v<decltype(Function), const First&, const Rest&...> &&
    std::is_invocable_v<decltype(Function), const Rest&...>;

template <class Call, bool Returns>
class object_call;
template <class Call, bool Returns>
struct object_visit;
template <class Call>
struct travel_of_values;
template <class Call>
struct travel_of_objects;

// How a finished call gets home. error: null if it returned.
void give_back_result(global_address home, const std::exception_ptr& error, const void* value,
                      std::size_t bytes);

}  // namespace detail

/// A call that has not been made: call<f>(arguments...) holds the arguments, and calling it calls f
/// with them. As the second function of fork2join, or spawned in a task_scope, it may be made on
/// another node. Its arguments and its result are trivially copyable, or, with
/// strata/serialize.hpp, what cereal serialises and can be made by default. Functions serialize()
/// are called by any thread of the node that a call leaves, on the stack of a task in the middle of
/// a fork as well, where little may be left of it: they must not wait for others, call Strata, or
/// go deep. What they throw, the call throws.
template <auto Function, class... Arguments>
class travelling_call {
 public:
  static_assert(!std::is_member_pointer_v<decltype(Function)>,
                "call<f>(arguments...): f is a member of a class; name a function, or a lambda "
                "that captures nothing: call<[](const T& t) { return t.f(); }>(t)");
  static_assert(std::is_invocable_v<decltype(Function), const Arguments&...>,
                "call<f>(arguments...): f cannot be called with these arguments; a number in front "
                "of them names a node where f can be called with the others");
  using result = std::invoke_result_t<decltype(Function), const Arguments&...>;
  static_assert(detail::refuse_arrays<Arguments...>());
  static_assert(detail::refuse_addresses<Arguments..., result>());
  static_assert((detail::may_travel<Arguments> && ...) && detail::may_travel<result>,
                "a call may travel to another node, so its arguments and its result must be "
                "trivially copyable, or serialisable: include strata/serialize.hpp and cereal's "
                "header for their types, such as <cereal/types/string.hpp>; use a lambda for a "
                "call that stays");
  static_assert((detail::can_be_bytes<Arguments> && ...) && detail::can_be_bytes<result>,
                "a call may travel to another node, and cereal cannot serialise its arguments or "
                "its result, or they have no default constructor: include cereal's header for "
                "their types, such as <cereal/types/vector.hpp> for std::vector, or give your own "
                "a function serialize()");
  /// Whether it travels as bytes of any number.
  static constexpr bool carries_objects =
      !detail::fit_a_call<Arguments...> || !detail::fit_a_call<result>;

  /// call<f>(arguments...) makes one.
  constexpr travelling_call() noexcept = default;
  constexpr explicit travelling_call(const Arguments&... a) requires(sizeof...(Arguments) > 0)
      : arguments_{pack_of(a...)} {}

  /// Makes the call here and now: f(arguments...).
  result operator()() const { return arguments_.apply(Function); }

 private:
  template <class Call>
  friend struct detail::travel_of_values;
  template <class Call>
  friend struct detail::travel_of_objects;
  template <class Call, bool Returns>
  friend class detail::object_call;
  using values = detail::value_list<Arguments...>;

  static constexpr values pack_of(const Arguments&... a) { return chain<values>(a...); }
  template <class List>
  static constexpr List chain() noexcept {
    return {};
  }
  template <class List, class First, class... Rest>
  static constexpr List chain(const First& first, const Rest&... rest) {
    return {first, chain<decltype(List::rest)>(rest...)};
  }

  values arguments_;
};

/// See travelling_call. Copies the arguments, and throws what that throws. A number that Function
/// cannot be called with names a node, which makes the call at once: see strata/remote_thread.hpp.
template <auto Function, class... Arguments>
requires(!detail::begins_with_node<Function, Arguments...>)
    [[nodiscard("the call has not been made; call<f>(on_node{n}, ...) makes "
                "it")]] constexpr auto call(const Arguments&... arguments) {
  return travelling_call<Function, Arguments...>(arguments...);
}

// ---- implementation ----

template <auto Function, class... Arguments>
struct detail::travel_of_values<travelling_call<Function, Arguments...>> {
  using call = travelling_call<Function, Arguments...>;
  using result = typename call::result;
  using task_at_home = fork_task<call>;

  static constexpr std::size_t argument_bytes = (std::size_t{0} + ... + sizeof(Arguments));

  // What makes the call on another node. The arguments stay bytes until then: blocks of the pool
  // are not aligned for every type.
  struct visitor : task {
    global_address home;
    std::array<std::byte, argument_bytes> arguments;

    static void body(task& t) {
      auto& self = static_cast<visitor&>(t);
      const global_address home = self.home;
      value_room<call> function;
      function.value.arguments_.unpack(self.arguments.data());
      this_worker().frames.deallocate(&self, sizeof(visitor));
      try {
        if constexpr (std::is_void_v<result>) {
          std::as_const(function.value)();
          give_back_result(home, nullptr, nullptr, 0);
        } else {
          const result value = std::as_const(function.value)();
          give_back_result(home, nullptr, std::addressof(value), sizeof(value));
        }
      } catch (...) {
        give_back_result(home, std::current_exception(), nullptr, 0);
      }
    }
    static void abandon(task& t, worker& w) { w.frames.deallocate(&t, sizeof(visitor)); }
    static constexpr task_type type_of{&run_on_stack, &body, &abandon, &type_name<call>};
  };

  static void pack(const task& t, std::uint16_t here, std::byte* out) {
    const std::uint64_t home = global_address(here, &t).bits();
    std::memcpy(out, &home, sizeof(home));
    static_cast<const task_at_home&>(t).function.get().arguments_.pack(out + sizeof(home));
  }
  static task* unpack(worker& w, const std::byte* in) {
    std::uint64_t home = 0;
    std::memcpy(&home, in, sizeof(home));
    // The arguments are not set before.
    auto* const v = ::new (w.frames.allocate(sizeof(visitor))) visitor;
    v->type = &visitor::type_of;
    v->home = global_address::from_bits(home);
    std::copy_n(in + sizeof(home), argument_bytes, v->arguments.data());
    return v;
  }
  // The result of the call, which was made elsewhere.
  static void accept(task& t, const std::exception_ptr& error, const std::byte* value) {
    auto& self = static_cast<task_at_home&>(t);
    auto outcome = [&]() -> result {
      if (error != nullptr) std::rethrow_exception(error);
      if constexpr (!std::is_void_v<result>) {
        using value_type = std::remove_cv_t<result>;
        return value_by<value_type>([&](value_type& r) { fill_from(r, value); });
      }
    };
    self.out.capture(outcome);
    self.join.complete(no_worker);
  }
  static constexpr std::uint32_t result_bytes = [] {
    if constexpr (std::is_void_v<result>)
      return 0U;
    else
      return static_cast<std::uint32_t>(sizeof(result));
  }();

  static const travelling_code code;
  static constexpr wire_type wire{
      static_cast<std::uint32_t>(sizeof(std::uint64_t) + argument_bytes),
      &pack,
      &unpack,
      &type_name<call>,
      &code,
      &accept,
      result_bytes};
  static constexpr unsigned mark = travelling_mark;
  static constexpr const wire_type* wire_of_task = &wire;
  template <class Result>
  using outcome_of = outcome<Result>;
};

template <auto Function, class... Arguments>
inline const detail::travelling_code
    detail::travel_of_values<travelling_call<Function, Arguments...>>::code{wire, &__ehdr_start};

// How a call with objects is made elsewhere. Returns: whether somebody wants the result.
template <auto Function, class... Arguments, bool Returns>
struct detail::object_visit<travelling_call<Function, Arguments...>, Returns> {
  using call = travelling_call<Function, Arguments...>;
  using result = std::conditional_t<Returns, std::remove_cv_t<typename call::result>, void>;

  // The arguments go as soon as they can.
  static object_bytes make(received_bytes in) {
    auto arguments = values_of<Arguments...>(std::move(in));
    const auto made = [&]() -> decltype(auto) {
      return std::apply(
          [](const value_room<Arguments>&... a) -> decltype(auto) { return Function(a.value...); },
          *arguments);
    };
    object_bytes out;
    if constexpr (std::is_void_v<result>) {
      static_cast<void>(made());
    } else {
      const std::unique_ptr<const result> value(new result(made()));  // on the heap, as they are
      arguments.reset();
      append_value(out, *value);
    }
    return out;
  }

  static void body(task& t) { object_visitor::serve(t, &make); }
  static constexpr task_type kind{&run_on_stack, &body, &object_visitor::abandon, &type_name<call>};
  static task* unpack(worker& w, const std::byte* in) {
    return object_visitor::unpack(w, in, kind);
  }
};

template <auto Function, class... Arguments>
struct detail::travel_of_objects<travelling_call<Function, Arguments...>> {
  using call = travelling_call<Function, Arguments...>;
  using task_at_home = fork_task<call>;

  static void prepare(task& t, worker& w) {
    auto& self = static_cast<task_at_home&>(t);
    self.out.leaves(w, self.function.get().arguments_.apply(&bytes_of_all<Arguments...>));
  }
  static void pack(const task& t, std::uint16_t here, std::byte* out) {
    static_cast<const task_at_home&>(t).out.trip().pack_head(t, here, out);
  }
  static std::span<const std::byte> behind(const task& t) {
    return static_cast<const task_at_home&>(t).out.trip().behind();
  }
  static void accept(task& t, const std::exception_ptr& error, const std::byte*) {
    auto& self = static_cast<task_at_home&>(t);
    self.out.come_back(error);
    self.join.complete(no_worker);
  }
  static void take_result(task& t, std::span<const std::byte> result) noexcept {
    static_cast<task_at_home&>(t).out.trip().keep_result(result);
  }

  static const travelling_code code;
  static constexpr wire_type wire{.argument_bytes = sizeof(object_head),
                                  .pack = &pack,
                                  .unpack = &object_visit<call, true>::unpack,
                                  .name = &type_name<call>,
                                  .code = &code,
                                  .accept = &accept,
                                  .take_arguments = &object_visitor::take_behind,
                                  .take_result = &take_result,
                                  .prepare = &prepare,
                                  .behind = &behind,
                                  .bytes_behind = &bytes_behind_head};
  static constexpr unsigned mark = travelling_mark | unshelved_mark;
  static constexpr const wire_type* wire_of_task = &wire;
  template <class Result>
  using outcome_of = object_outcome<Result>;
};

template <auto Function, class... Arguments>
inline const detail::travelling_code
    detail::travel_of_objects<travelling_call<Function, Arguments...>>::code{wire, &__ehdr_start};

template <auto Function, class... Arguments>
struct detail::travel_of<travelling_call<Function, Arguments...>>
    : std::conditional_t<travelling_call<Function, Arguments...>::carries_objects,
                         travel_of_objects<travelling_call<Function, Arguments...>>,
                         travel_of_values<travelling_call<Function, Arguments...>>> {};

}  // namespace strata

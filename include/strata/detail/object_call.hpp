// SPDX-License-Identifier: Apache-2.0
// Calls on a named node whose arguments or result are objects, or larger than a call carries.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include "strata/detail/join.hpp"
#include "strata/detail/object_trip.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/task.hpp"

namespace strata {

template <auto Function, class... Arguments>
class travelling_call;  // strata/call.hpp

namespace detail {

template <class Call, bool Returns>
struct object_visit;  // likewise

// Sends t there; it is told by its wire_type's accept() when the result, or what was thrown, is
// back. more: what its take_arguments() gets, copied. Throws misuse_error if there is no such node.
void call_on(std::uint16_t node, task& t, std::span<const std::byte> more = {});

// The call at home. It is awaited before it ends: its arguments and its result are here.
class object_call_at_home : public task {
 public:
  // large_result: one that is larger than an answer may come.
  object_call_at_home(const task_type& kind, object_bytes arguments, bool large_result);
  object_call_at_home(const object_call_at_home&) = delete;
  object_call_at_home& operator=(const object_call_at_home&) = delete;

  // Once. Throws as call_on().
  void begin(std::uint16_t node);
  [[nodiscard]] bool has_ended() const noexcept { return join_.done(); }
  // After begin(): suspends until the call has been answered. As join_point::wait().
  void await() { join_.wait(); }
  // After begin(), once: suspends until the result is here, whose bytes stay as long as this.
  // Rethrows what the call threw.
  [[nodiscard]] std::span<const std::byte> wait();

  // For its wire_type.
  static void pack(const task& t, std::uint16_t here, std::byte* out);
  static void accept(task& t, const std::exception_ptr& error, const std::byte* nothing);
  static void take_behind(task& t, std::span<const std::byte> result) noexcept;

 private:
  join_point join_;
  std::exception_ptr error_;
  object_trip trip_;
};

// How calls of this kind travel. Returns: whether somebody wants the result.
template <class Call, bool Returns>
struct object_travel {
  static const travelling_code code;
  static constexpr wire_type wire{.argument_bytes = sizeof(object_head),
                                  .pack = &object_call_at_home::pack,
                                  .unpack = &object_visit<Call, Returns>::unpack,
                                  .name = &type_name<Call>,
                                  .code = &code,
                                  .accept = &object_call_at_home::accept,
                                  .take_arguments = &object_visitor::take_behind,
                                  .take_result = &object_call_at_home::take_behind};
  // It waits, and nobody runs it.
  static constexpr task_type at_home{nullptr, nullptr, nullptr, &type_name<Call>, &wire};
};

template <class Call, bool Returns>
inline const travelling_code object_travel<Call, Returns>::code{wire, &__ehdr_start};

// A call on another node, for as long as it is awaited.
template <class Call, bool Returns>
class object_call;

template <auto Function, class... Arguments, bool Returns>
class object_call<travelling_call<Function, Arguments...>, Returns> {
  using made = travelling_call<Function, Arguments...>;
  using result = typename object_visit<made, Returns>::result;
  static constexpr const task_type& kind = object_travel<made, Returns>::at_home;

 public:
  explicit object_call(const Arguments&... arguments)
      : there_(kind, bytes_of_all(arguments...), may_be_large<result>) {}
  explicit object_call(const made& c)
      : there_(kind, c.arguments_.apply(&bytes_of_all<Arguments...>), may_be_large<result>) {}

  void begin(std::uint16_t node) { there_.begin(node); }
  [[nodiscard]] bool has_ended() const noexcept { return there_.has_ended(); }
  void await() { there_.await(); }
  result take() { return result_of<result>(there_.wait()); }

 private:
  object_call_at_home there_;
};

}  // namespace detail

}  // namespace strata

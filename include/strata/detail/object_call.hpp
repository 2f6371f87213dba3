// SPDX-License-Identifier: Apache-2.0
// Calls on a named node whose arguments or result are objects, or larger than a call carries. They
// are made into bytes on one side and into objects again on the other. Up to travelling_bytes_max
// bytes travel within the call, and within its answer. For more, the node that makes the call asks
// its caller: for the arguments before it begins, and for room for the result when it has it. They
// then come as a message between endpoints, into memory that waits for them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/call.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/task.hpp"
#include "strata/detail/worker.hpp"
#include "strata/global_ptr.hpp"

namespace strata {

namespace messages {
class held_parcel;
}

namespace detail {

// Sends t there; it is told by its wire_type's accept() when the result, or what was thrown, is
// back. more: what its take_arguments() gets, copied. Throws misuse_error if there is no such node.
void call_on(node_id_t node, task& t, std::span<const std::byte> more = {});

using object_bytes = std::vector<std::byte>;

// Bytes that come from another node; what they are at first does not matter.
class received_bytes {
 public:
  received_bytes() noexcept = default;
  // Throws std::bad_alloc.
  explicit received_bytes(std::size_t n)
      : data_(std::make_unique_for_overwrite<std::byte[]>(n)), size_(n) {}
  explicit received_bytes(std::span<const std::byte> from) : received_bytes(from.size()) {
    std::copy(from.begin(), from.end(), data_.get());
  }
  [[nodiscard]] std::span<std::byte> all() const noexcept { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

// Throw serialization_error.
[[noreturn, gnu::cold]] void refuse_object_bytes(const char* why);

template <class T>
void append_value(object_bytes& to, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    // insert() makes g++ 12 see writes where there is no room.
    const std::size_t before = to.size();
    to.resize(before + sizeof(T));
    std::memcpy(to.data() + before, std::addressof(value), sizeof(T));
  } else {
    object_codec<T>::append(to, value);
  }
}

template <class T>
void take_value(std::span<const std::byte>& from, T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (from.size() < sizeof(T)) refuse_object_bytes("there are too few");
    std::memcpy(std::addressof(value), from.data(), sizeof(T));
    from = from.subspan(sizeof(T));
  } else {
    object_codec<T>::take(from, value);
  }
}

inline void require_all_taken(std::span<const std::byte> rest) {
  if (!rest.empty()) refuse_object_bytes("there are too many");
}

// What every such call begins with on the wire.
struct object_call_head {
  std::uint64_t home = 0;    // where it waits
  std::uint64_t parcel = 0;  // of the node there: where what is large comes from and goes to
  std::uint64_t bytes = 0;   // of the arguments
};

// The call at home. It is awaited before it ends: its arguments and its result are here.
class object_call_at_home : public task {
 public:
  // large_result: one that is larger than an answer may come.
  object_call_at_home(const task_type& kind, object_bytes arguments, bool large_result);
  object_call_at_home(const object_call_at_home&) = delete;
  object_call_at_home& operator=(const object_call_at_home&) = delete;
  ~object_call_at_home();

  // Once. Throws as call_on().
  void begin(std::uint16_t node);
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
  std::size_t bytes_;                              // of the arguments
  object_bytes arguments_;                         // until it begins
  received_bytes result_;                          // which came with the answer
  std::unique_ptr<messages::held_parcel> parcel_;  // null: neither can be large
};

// The same where it is made.
class visiting_object_call : public task {
 public:
  visiting_object_call(const task_type& kind, const std::byte* head) noexcept : task{&kind} {
    std::memcpy(&head_, head, sizeof(head_));
  }

  static void take_behind(task& t, std::span<const std::byte> arguments) noexcept;
  // Makes the call: `make` turns the bytes of its arguments into those of its result. What it
  // throws goes home as well.
  void serve(object_bytes (*make)(received_bytes));

 private:
  received_bytes arguments();
  // False: a node is lost, and what is large cannot come or go.
  bool attempt(object_bytes (*make)(received_bytes), object_bytes& result);

  object_call_head head_;
  received_bytes arguments_;
  std::exception_ptr refused_;
};

// How calls of this kind travel. Returns: whether somebody wants the result.
template <class Call, bool Returns>
struct object_travel;

template <auto Function, class... Arguments, bool Returns>
struct object_travel<travelling_call<Function, Arguments...>, Returns> {
  using call = travelling_call<Function, Arguments...>;
  using result = std::conditional_t<Returns, std::remove_cv_t<typename call::result>, void>;

  static object_bytes packed(const Arguments&... arguments) {
    object_bytes out;
    (append_value(out, arguments), ...);
    return out;
  }

  // Arguments in, result out. The bytes and the arguments go as soon as they can: both may be
  // large.
  static object_bytes make(received_bytes in) {
    // On the heap: stacks are small.
    auto arguments = std::make_unique<std::tuple<Arguments...>>();
    std::span<const std::byte> rest = in.all();
    std::apply([&](Arguments&... a) { (take_value(rest, a), ...); }, *arguments);
    require_all_taken(rest);
    in = {};
    const auto made = [&]() -> decltype(auto) {
      return std::apply([](const Arguments&... a) -> decltype(auto) { return Function(a...); },
                        *arguments);
    };
    object_bytes out;
    if constexpr (std::is_void_v<result>) {
      static_cast<void>(made());
    } else {
      const std::unique_ptr<const result> value(new result(made()));  // as the arguments
      arguments.reset();
      append_value(out, *value);
    }
    return out;
  }

  static void body(task& t) {
    auto& self = static_cast<visiting_object_call&>(t);
    visiting_object_call mine(std::move(self));
    abandon(t, this_worker());
    mine.serve(&make);
  }
  static void abandon(task& t, worker& w) {
    auto& self = static_cast<visiting_object_call&>(t);
    std::destroy_at(&self);
    w.frames.deallocate(&self, sizeof(visiting_object_call));
  }
  static constexpr task_type visitor{&run_on_stack, &body, &abandon, &type_name<call>};

  static task* unpack(worker& w, const std::byte* in) {
    return ::new (w.frames.allocate(sizeof(visiting_object_call)))
        visiting_object_call(visitor, in);
  }

  static const travelling_code code;
  static constexpr wire_type wire{.argument_bytes = sizeof(object_call_head),
                                  .pack = &object_call_at_home::pack,
                                  .unpack = &unpack,
                                  .name = &type_name<call>,
                                  .code = &code,
                                  .accept = &object_call_at_home::accept,
                                  .take_arguments = &visiting_object_call::take_behind,
                                  .take_result = &object_call_at_home::take_behind};
  // It waits, and nobody runs it.
  static constexpr task_type at_home{nullptr, nullptr, nullptr, &type_name<call>, &wire};
};

template <auto Function, class... Arguments, bool Returns>
inline const travelling_code object_travel<travelling_call<Function, Arguments...>, Returns>::code{
    wire, &__ehdr_start};

// A call on another node, for as long as it is awaited.
template <class Call, bool Returns>
class object_call;

template <auto Function, class... Arguments, bool Returns>
class object_call<travelling_call<Function, Arguments...>, Returns> {
  using travel = object_travel<travelling_call<Function, Arguments...>, Returns>;
  using result = typename travel::result;
  static constexpr bool may_be_large = [] {
    if constexpr (std::is_void_v<result>)
      return false;
    else
      return !std::is_trivially_copyable_v<result> || sizeof(result) > travelling_bytes_max;
  }();

 public:
  explicit object_call(const Arguments&... arguments)
      : there_(travel::at_home, travel::packed(arguments...), may_be_large) {}
  explicit object_call(const travelling_call<Function, Arguments...>& c)
      : there_(travel::at_home, c.arguments_.apply(&travel::packed), may_be_large) {}

  void begin(std::uint16_t node) { there_.begin(node); }
  result take() {
    std::span<const std::byte> rest = there_.wait();
    if constexpr (std::is_void_v<result>) {
      require_all_taken(rest);
    } else {
      result value;
      take_value(rest, value);
      require_all_taken(rest);
      return value;
    }
  }

 private:
  object_call_at_home there_;
};

}  // namespace detail

}  // namespace strata

// SPDX-License-Identifier: Apache-2.0
// How calls and tokens travel whose arguments or results are objects, or larger than a call
// carries. They are made into bytes on one side and into objects again on the other. Up to
// travelling_bytes_max bytes travel behind the head of a call or token, and behind that of an
// answer. For more, the node that runs it asks its home: for the arguments before it begins, and
// for room for the result when it has it. They then come as a message between endpoints, into
// memory that waits for them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "strata/detail/object_bytes.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/worker.hpp"

namespace strata {

namespace messages {
class held_large_value;
}

namespace detail {

// What every such call or token begins with on the wire.
struct object_head {
  std::uint64_t home = 0;         // where a call waits; of a token only the node means something
  std::uint64_t large_value = 0;  // of the node there: where what is large comes from and goes to
  std::uint64_t bytes = 0;        // of the arguments
};
// How many of them follow it. For wire_type.
std::size_t bytes_behind_head(const std::byte* head) noexcept;

// Bytes that are taken in where nobody can be told that there is no memory for them.
class kept_bytes {
 public:
  void keep(std::span<const std::byte> from) noexcept;
  // Throws what keep() could not.
  received_bytes& get();

 private:
  received_bytes bytes_;
  std::exception_ptr refused_;
};

// The bytes of a call that is made on another node, at home: its arguments, until they have gone,
// and its result.
class object_trip {
 public:
  // w: a worker of this node. large_result: one that is larger than an answer may come. Throws
  // misuse_error outside a runtime.
  object_trip(const worker& w, object_bytes arguments, bool large_result);
  object_trip(const object_trip&) = delete;
  object_trip& operator=(const object_trip&) = delete;
  // Suspends if somebody writes there.
  ~object_trip();

  void pack_head(const task& home, std::uint16_t here, std::byte* out) const;
  // What goes with the head.
  [[nodiscard]] std::span<const std::byte> behind() const noexcept { return arguments_; }
  void forget_arguments() noexcept { arguments_ = {}; }

  // The result that has come with the answer.
  void keep_result(std::span<const std::byte> bytes) noexcept { result_.keep(bytes); }
  // Once the answer is here: suspends until the result is, whose bytes stay as long as this.
  // Throws serialization_error if it is not what was said.
  [[nodiscard]] std::span<const std::byte> result();

 private:
  std::size_t bytes_;                                        // of the arguments
  object_bytes arguments_;                                   // unless they are asked for
  kept_bytes result_;                                        // which came with the answer
  std::unique_ptr<messages::held_large_value> large_value_;  // null: neither can be large
};

// What a branch left behind that may have been made here or on another node.
template <class Result>
class object_outcome {
 public:
  // As outcome.
  template <class F>
  void capture(F& f) noexcept {
    here_.capture(f);
  }
  regular<Result> take() {
    if (!is_back_) return here_.take();
    if constexpr (std::is_void_v<Result>) {
      result_of<void>(trip_->result());
      return {};
    } else {
      return result_of<std::remove_cv_t<Result>>(trip_->result());
    }
  }
  void drop() noexcept {
    if (!is_back_) here_.drop();
  }

  // It is about to leave. One that has not arrived may leave again.
  void leaves(const worker& w, object_bytes arguments) {
    trip_.reset();
    trip_ = std::make_unique<object_trip>(w, std::move(arguments), may_be_large<Result>);
  }
  [[nodiscard]] object_trip& trip() const noexcept { return *trip_; }
  // Its answer is here, or nothing will come.
  void come_back(const std::exception_ptr& error) noexcept {
    if (error == nullptr) {
      is_back_ = true;
      return;
    }
    const auto threw = [&]() -> Result { std::rethrow_exception(error); };
    here_.capture(threw);
  }

 private:
  outcome<Result> here_;  // of one that was made here, or threw
  std::unique_ptr<object_trip> trip_;
  bool is_back_ = false;
};

// The arguments of a token that leaves, until it has left. Many wait on this node until who runs
// it asks for them.
class leaving_arguments {
 public:
  leaving_arguments(const worker& w, object_bytes arguments);
  leaving_arguments(const leaving_arguments&) = delete;
  leaving_arguments& operator=(const leaving_arguments&) = delete;
  ~leaving_arguments();

  // From now on they wait for whoever gets the head, or until give_up() of it.
  void pack_head(std::uint16_t here, std::byte* out) noexcept;
  [[nodiscard]] std::span<const std::byte> behind() const noexcept { return arguments_; }

  // Nobody gets this head of w's node. For wire_type.
  static void give_up(worker& w, const std::byte* head) noexcept;

 private:
  std::size_t bytes_;
  object_bytes arguments_;                                   // unless they are asked for
  std::unique_ptr<messages::held_large_value> large_value_;  // else null
};

// A call or token where it is made.
class object_visitor : public task {
 public:
  static task* unpack(worker& w, const std::byte* head, const task_type& kind);
  static void abandon(task& t, worker& w);
  // For its wire_type.
  static void take_behind(task& t, std::span<const std::byte> arguments) noexcept;

  // These end t. What the functions throw goes home as well, or makes the computation fail.
  // Makes a call: `make` turns the bytes of its arguments into those of its result.
  static void serve(task& t, object_bytes (*make)(received_bytes));
  // Begins a token.
  static void begin(task& t, void (*start)(received_bytes));

 private:
  object_visitor(const task_type& kind, const std::byte* head) noexcept;
  static object_visitor taken_out_of(task& t);
  received_bytes arguments();
  // False: a node is lost, and what is large cannot come or go.
  bool attempt(object_bytes (*make)(received_bytes), object_bytes& result);

  object_head head_;
  kept_bytes arguments_;
};

}  // namespace detail

}  // namespace strata

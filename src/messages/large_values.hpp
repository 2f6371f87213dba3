// SPDX-License-Identifier: Apache-2.0
// What is too large for the calls and tokens of this node that are made elsewhere
// (detail/object_trip.hpp): the arguments that wait to be asked for, the room that waits for a
// result. Other nodes name them by number, as a call may be told that it is lost while they still
// ask.
//
// Invariant: a number leads to its value for as long as the call is awaited, that of a token until
// its arguments have been asked for; who has found it may use it on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "strata/detail/object_trip.hpp"
#include "strata/message.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

// Memory for one message from `node`, which it can be sent to from now on. Suspends at its end, if
// somebody writes there.
class awaited_bytes {
 public:
  // Throws std::bad_alloc, and what endpoint::start_receive() throws.
  awaited_bytes(std::uint64_t bytes, node_id_t node);

  [[nodiscard]] endpoint_id at() const noexcept { return at_.id(); }
  // Once, when who sends it has said that it has: suspends until it is here. Throws as
  // transfer::wait(), and serialization_error if it is not that large, or nothing was sent.
  void wait();
  [[nodiscard]] strata::detail::received_bytes& bytes() noexcept { return bytes_; }

 private:
  strata::detail::received_bytes bytes_;
  endpoint at_;
  transfer arrives_;
};

struct large_value {
  std::vector<std::byte> arguments{};
  bool only_arguments = false;  // a token's: nobody waits for more
  // Made by the node that makes the call, and used when its answer is here.
  std::optional<awaited_bytes> result{};
};

// By who makes the call with this head: where so many bytes of its result can be sent; and that
// they are, which throws serialization_error if they are more than that.
[[nodiscard]] endpoint_id room_for_result(const strata::detail::object_head& head,
                                          std::uint64_t bytes);
void send_result(endpoint_id room, std::span<const std::byte> result);

// Any thread of the runtime.
class large_value_table {
 public:
  std::uint64_t enter(std::shared_ptr<large_value> p);
  // Null: nobody awaits that call any more.
  [[nodiscard]] std::shared_ptr<large_value> find(std::uint64_t number) noexcept;
  void leave(std::uint64_t number) noexcept;
  // Calls that are awaited, and tokens whose arguments are.
  [[nodiscard]] std::size_t size() noexcept;

 private:
  strata::detail::spin_lock lock_;  // held briefly, by uninterrupted threads
  std::unordered_map<std::uint64_t, std::shared_ptr<large_value>> large_values_;
  std::uint64_t next_ = 1;
};

// One that is in the table of the caller's node.
class held_large_value {
 public:
  // Of w's node. Throws misuse_error outside a runtime.
  explicit held_large_value(const strata::detail::worker& w);
  held_large_value(const held_large_value&) = delete;
  held_large_value& operator=(const held_large_value&) = delete;
  ~held_large_value() {
    if (table_ != nullptr) table_->leave(number_);
  }

  // In the table longer than this lives.
  void stays() noexcept { table_ = nullptr; }

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] large_value& operator*() const noexcept { return *large_value_; }
  [[nodiscard]] large_value* operator->() const noexcept { return large_value_.get(); }

 private:
  std::shared_ptr<large_value_table> table_;
  std::shared_ptr<large_value> large_value_;
  std::uint64_t number_;
};

}  // namespace strata::messages

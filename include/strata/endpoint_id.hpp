// SPDX-License-Identifier: Apache-2.0
// The names of endpoints, and what stands for several of them in a receive.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "strata/global_ptr.hpp"

namespace strata {

/// The name of an endpoint in its job: a value of 8 bytes that can travel in tokens, calls and
/// messages. Never used twice within a job, up to 16 million endpoints made at one place of a
/// node's table.
class endpoint_id {
 public:
  /// No endpoint; as a source in a receive: any (any_endpoint).
  constexpr endpoint_id() noexcept = default;
  /// Where it lives.
  [[nodiscard]] constexpr node_id_t node() const noexcept {
    return static_cast<node_id_t>(bits_ >> 48);
  }
  /// Whether it stands for all endpoints of node(), as any_endpoint_on() makes it.
  [[nodiscard]] constexpr bool is_any_on_node() const noexcept {
    return (bits_ & within_node) == any_on_node;
  }
  /// Whether it names an endpoint, or all of a node.
  constexpr explicit operator bool() const noexcept { return bits_ != 0; }
  friend constexpr auto operator<=>(endpoint_id, endpoint_id) noexcept = default;

  /// Everything as one word, for the runtime and for hashing.
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  /// The inverse of bits().
  static constexpr endpoint_id from_bits(std::uint64_t bits) noexcept {
    endpoint_id id;
    id.bits_ = bits;
    return id;
  }

 private:
  friend constexpr endpoint_id any_endpoint_on(node_id_t node) noexcept;
  // What tells endpoints of one node apart; and what none of them has there, since the lowest 24
  // bits count from 1.
  static constexpr std::uint64_t within_node = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t any_on_node = std::uint64_t{1} << 24;

  std::uint64_t bits_ = 0;
};

/// As a source in a receive or a probe: any endpoint of the job.
inline constexpr endpoint_id any_endpoint{};

/// As a source in a receive or a probe: any endpoint of that node, those that it makes later
/// included. A receive from a node that the job cannot have throws misuse_error; from one that has
/// left the job, or leaves before it is answered, node_left_error, once nothing of what came from
/// there fits. In an elastic job a node that has not come yet is waited for. Sending to it throws
/// misuse_error.
///
///   message m = mine.receive_message(strata::any_endpoint_on(3), 7);
[[nodiscard]] constexpr endpoint_id any_endpoint_on(node_id_t node) noexcept {
  return endpoint_id::from_bits(std::uint64_t{node} << 48 | endpoint_id::any_on_node);
}

}  // namespace strata

template <>
struct std::hash<strata::endpoint_id> {
  std::size_t operator()(strata::endpoint_id id) const noexcept {
    return std::hash<std::uint64_t>()(id.bits());
  }
};

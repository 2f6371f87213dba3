// SPDX-License-Identifier: Apache-2.0
// Large blocks from one node's memory into another's, with no copy in between where the network can
// do that. What a transport adds that has devices for it; both ends have agreed by messages before.
//
//   the node that wants something           the node that has it
//     expect(peer, number, into)
//     a message: "give me that as number"
//                                             give(peer, number, bytes, own_number)
//     receiver::on_arrived(number, ...)       receiver::on_given(own_number, ...)
//
// The memory of either end belongs to the transfer until poll() says that it is over, however it
// ends; nobody touches it any more then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "net/wire.hpp"

namespace strata::net {

class transfers {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  // From so many bytes on a transfer from `peer` is better than messages.
  [[nodiscard]] virtual std::size_t bytes_min(node_id peer) noexcept = 0;

  // Not empty, and what `peer` gives under that number, which is of no other transfer from it, has
  // as many bytes. False: the peer is lost, and nothing has happened.
  [[nodiscard]] virtual bool expect(node_id peer, std::uint64_t number,
                                    std::span<std::byte> into) = 0;
  // True: it had not begun, and never will; on_arrived() is not called. Otherwise it will be.
  [[nodiscard]] virtual bool withdraw(node_id peer, std::uint64_t number) noexcept = 0;

  // Once for what `peer` expects. False: it is lost, and nothing has happened.
  [[nodiscard]] virtual bool give(node_id peer, std::uint64_t number,
                                  std::span<const std::byte> bytes, std::uint64_t own_number) = 0;

 protected:
  ~transfers() = default;
};

}  // namespace strata::net

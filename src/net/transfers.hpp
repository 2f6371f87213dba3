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
//
// Memory that is registered is prepared for the network's devices once, and not for each transfer.
// It is found by its address when one begins, so the two ends need not agree on anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "net/wire.hpp"

namespace strata::net {

class transfers {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  // From so many bytes on a transfer from `peer` is better than messages.
  [[nodiscard]] virtual std::size_t bytes_min(node_id peer) noexcept = 0;

  // Not empty, and what `peer` gives under that number, which is of no other transfer from it, has
  // as many bytes. False: the peer is lost, and nothing has happened. Where this or give() throws
  // bad_alloc it may be called again.
  [[nodiscard]] virtual bool expect(node_id peer, std::uint64_t number,
                                    std::span<std::byte> into) = 0;
  // True: it had not begun, and never will; on_arrived() is not called. Otherwise it will be.
  [[nodiscard]] virtual bool withdraw(node_id peer, std::uint64_t number) noexcept = 0;

  // Once for what `peer` expects. False: it is lost, and nothing has happened.
  [[nodiscard]] virtual bool give(node_id peer, std::uint64_t number,
                                  std::span<const std::byte> bytes, std::uint64_t own_number) = 0;

  // Ends with the object, which may outlive the transport. Of what has begun in it by then the
  // devices let go before poll() says that it is over. Any thread.
  class registration {
   public:
    virtual ~registration() = default;
    // Transfers that have begun in it.
    [[nodiscard]] virtual std::uint64_t uses() const noexcept = 0;
  };
  // `bytes` is not empty, may overlap others that are registered, and stays where it is for as long
  // as its registration lasts. Null: there is nothing to prepare, or it cannot be done (too little
  // memory may be locked); transfers work all the same. Takes as long as the kernel needs to lock
  // all of it.
  [[nodiscard]] virtual std::unique_ptr<registration> register_memory(
      std::span<std::byte> /*bytes*/) {
    return nullptr;
  }

 protected:
  ~transfers() = default;
};

}  // namespace strata::net

// SPDX-License-Identifier: Apache-2.0
// Memory that messages come from and go to again and again, made known to the networks of the job
// once ("memory registration" in MPI and in the interfaces of network devices).
//
//   std::vector<double> halo(1 << 20);
//   const strata::registered_memory prepared(halo);   // before the loop
//   for (int step = 0; step < steps; ++step) {
//     exchange(halo);                                 // messages as ever, of all of it or of parts
//   }                                                 // `prepared` ends before `halo` does
//
// A network device reads and writes only memory that the kernel keeps in place for it, which takes
// it microseconds and a system call for each block of memory. That is done for each large message
// otherwise, or found in a cache of the network's; here it is done before, and the message begins
// at once. No call of message.hpp changes: where bytes are in registered memory, the transfer finds
// that by their address.
//
// What profits: UCX, with devices that move blocks from memory to memory (message.hpp; from 128 KiB
// on). Shared memory, TCP and UDP, messages within a process, and a job of one node need nothing,
// and nothing is done there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "strata/detail/elements.hpp"

namespace strata {

namespace messages {
class registrations;
}  // namespace messages

/// A registration of a piece of memory with this node's networks, for as long as the object lives.
/// The memory must not be freed or moved meanwhile (a std::vector that grows moves its elements);
/// its content may change. It stays resident, and counts towards the process's limit of locked
/// memory (RLIMIT_MEMLOCK) where a network has such devices.
///
/// Any thread or task of the node may make, move and destroy one; one object is used by one thread
/// at a time, but for uses(), networks() and bytes(). Several may be of the same memory, or
/// overlap. An object may outlive its runtime, and does nothing then.
class registered_memory {
 public:
  /// None.
  registered_memory() noexcept = default;
  /// Registers all of `bytes`, for messages from there or to there, or to or from any part. Blocks
  /// the calling worker while the kernel makes the memory resident, and messages over the same
  /// network meanwhile: up to a second for some gigabytes. A network that refuses, for want of
  /// memory or because the process may not lock as much, goes on without; networks() tells.
  /// Throws misuse_error outside a runtime (runtime::run()).
  explicit registered_memory(std::span<std::byte> bytes);
  /// The same for the elements of a std::vector, std::array, std::span, plain array or another
  /// contiguous range that does not end with the call: trivially copyable, and no addresses.
  template <detail::lasting_room R>
  explicit registered_memory(R&& values) : registered_memory(detail::room_of(values)) {}

  /// `other` is empty afterwards.
  registered_memory(registered_memory&& other) noexcept;
  /// As the destructor does, and `other` is empty afterwards.
  registered_memory& operator=(registered_memory&& other) noexcept;
  /// Returns at once. Messages that are under way go on as they are; the memory may be freed when
  /// they have ended, as without a registration.
  ~registered_memory();

  /// What it was made for; empty if moved from.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// How many of this node's networks have taken it. 0 where none needs to, or all have refused.
  [[nodiscard]] std::size_t networks() const noexcept;
  /// Transfers that these networks have begun in it so far. Where several registrations hold the
  /// same bytes, one of them counts.
  [[nodiscard]] std::uint64_t uses() const noexcept;

 private:
  struct release {
    void operator()(messages::registrations* r) const noexcept;
  };
  std::span<std::byte> bytes_{};
  std::unique_ptr<messages::registrations, release> with_;  // null: of no network
};

}  // namespace strata

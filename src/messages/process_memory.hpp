// SPDX-License-Identifier: Apache-2.0
// Reading and writing another process's memory, where the kernel permits it: one copy instead of
// two. (process_vm_readv(2).)
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata::messages {

// A random number of this process at an address of its own: who reads it there has the right
// process, also when process ids mean something else in another container.
struct process_mark {
  std::uint64_t address, value;
};
process_mark own_mark() noexcept;
std::uint32_t own_process() noexcept;

// The same for memory that others may read until it is wanted for something else.
class revocable_mark {
 public:
  revocable_mark() noexcept;
  revocable_mark(const revocable_mark&) = delete;
  revocable_mark& operator=(const revocable_mark&) = delete;
  [[nodiscard]] process_mark get() const noexcept {
    return {reinterpret_cast<std::uintptr_t>(&there_), value_};
  }
  // Before the memory is written to. For ever. Partner: read_process().
  void revoke() noexcept { there_.store(~value_, std::memory_order_seq_cst); }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::uint64_t value_;
  std::atomic<std::uint64_t> there_;
};

// Copies `bytes` bytes from `from` in that process. False if the process cannot be read, is not the
// one with this mark, or has revoked it before all were read; what was written to `into` then means
// nothing.
bool read_process(std::uint32_t process, const process_mark& mark, std::uint64_t from, void* into,
                  std::size_t bytes) noexcept;
// Whether that process is there, and the one with this mark, revoked or not.
bool is_there(std::uint32_t process, const process_mark& mark) noexcept;

// A byte of this process through which others come when they write: nobody does so any more, and
// none who has not begun to write will, after close_door(), which is for ever.
std::uint64_t own_door() noexcept;
void close_door() noexcept;

// Copies `bytes` bytes to `to` in that process, whose door is open. False as above.
bool write_process(std::uint32_t process, const process_mark& mark, std::uint64_t door,
                   std::uint64_t to, const void* from, std::size_t bytes) noexcept;

}  // namespace strata::messages

// SPDX-License-Identifier: Apache-2.0
// What a descriptor is of, as far as it decides how one reads from it without waiting.
#pragma once
#include <cstdint>

namespace strata::preload {

enum class file_kind : std::uint8_t {
  ready,   // regular, a directory, a block device, or no descriptor: nobody waits, as poll() has it
  socket,  // MSG_DONTWAIT
  pipe,    // RWF_NOWAIT, where the kernel knows it
  nameless,  // eventfd, timerfd and others: as a pipe
  device,    // may mean something else by RWF_NOWAIT than what it tells poll()
};

// Asks the kernel; nearly as much as a short read.
file_kind look_at(int fd) noexcept;
// The number was of a socket when it was looked at last. It can be of something else by now, as
// ENOTSOCK tells.
bool was_socket(int fd) noexcept;

}  // namespace strata::preload

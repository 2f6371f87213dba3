// SPDX-License-Identifier: Apache-2.0
#include "net/byte_ring.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "base/errno_error.hpp"
#include "os/descriptor.hpp"
#include "os/memory_file.hpp"

namespace strata::net {

byte_ring::byte_ring(std::size_t bytes_min) {
  // A power of two of pages: positions become offsets without a division.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  capacity_ = std::bit_ceil(bytes_min < page ? page : bytes_min);

  const os::descriptor file(::memfd_create("strata-ring", MFD_CLOEXEC));
  if (!file) throw errno_error("cannot make a buffer for a connection", errno);
  os::resize_memory_file(file.get(), capacity_, "cannot make a buffer for a connection");
  void* const both =
      ::mmap(nullptr, 2 * capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (both == MAP_FAILED) throw errno_error("cannot map a buffer for a connection", errno);
  memory_ = static_cast<std::byte*>(both);
  for (std::byte* half : {memory_, memory_ + capacity_}) {
    if (::mmap(half, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) ==
        MAP_FAILED) {
      const int code = errno;
      ::munmap(memory_, 2 * capacity_);
      throw errno_error("cannot map a buffer for a connection", code);
    }
  }
}

void byte_ring::give_back_memory() noexcept {
  (void)::madvise(memory_, capacity_, MADV_REMOVE);  // both halves are of the same pages
}

byte_ring::~byte_ring() { ::munmap(memory_, 2 * capacity_); }

}  // namespace strata::net

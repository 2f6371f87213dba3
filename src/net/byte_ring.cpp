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
namespace {

bool map_file(int file, std::byte* at, std::size_t bytes) noexcept {
  return ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
}

// Where there are no such files, as behind some filters of system calls: of what is shared the
// kernel maps the same pages once more (mremap(2), an old_size of 0), as valgrind does not.
bool map_twice_without_file(std::byte* first, std::byte* second, std::size_t bytes) noexcept {
  return ::mmap(first, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED &&
         ::mremap(first, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, second) != MAP_FAILED;
}

}  // namespace

byte_ring::byte_ring(std::size_t bytes_min) {
  // A power of two of pages: positions become offsets without a division.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  capacity_ = std::bit_ceil(bytes_min < page ? page : bytes_min);

  const os::descriptor file(::memfd_create("strata-ring", MFD_CLOEXEC));
  if (file) os::resize_memory_file(file.get(), capacity_, "cannot make a buffer for a connection");
  void* const both =
      ::mmap(nullptr, 2 * capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (both == MAP_FAILED) throw errno_error("cannot map a buffer for a connection", errno);
  memory_ = static_cast<std::byte*>(both);
  std::byte* const second = memory_ + capacity_;
  const bool mapped =
      file ? map_file(file.get(), memory_, capacity_) && map_file(file.get(), second, capacity_)
           : map_twice_without_file(memory_, second, capacity_);
  if (mapped) return;
  const int code = errno;
  ::munmap(memory_, 2 * capacity_);
  throw errno_error("cannot map a buffer for a connection", code);
}

void byte_ring::give_back_memory() noexcept {
  (void)::madvise(memory_, capacity_, MADV_REMOVE);  // both halves are of the same pages
}

byte_ring::~byte_ring() { ::munmap(memory_, 2 * capacity_); }

}  // namespace strata::net

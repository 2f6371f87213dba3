// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace strata::launch::pmix {

namespace {

os::descriptor file_of(std::uint32_t process, std::uint32_t fd) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  return os::descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace

host_memory::page* host_memory::map(int roll) {
  void* const mapped = ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, roll, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<page*>(mapped);
}

host_memory::host_memory(os::descriptor memory, os::descriptor roll, page* mapped,
                         const ticket& where)
    : memory_(std::move(memory)), roll_(std::move(roll)), page_(mapped), where_(where) {}

host_memory::~host_memory() { ::munmap(page_, sizeof(page)); }

std::unique_ptr<host_memory> host_memory::make() {
  os::descriptor memory(::memfd_create("strata-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  os::descriptor roll(::memfd_create("strata-roll", MFD_CLOEXEC));
  if (!memory || !roll || ::ftruncate(roll.get(), sizeof(page)) != 0) return nullptr;
  page* const mapped = map(roll.get());
  if (mapped == nullptr) return nullptr;
  ticket where{static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(memory.get()),
               static_cast<std::uint32_t>(roll.get())};
  if (::getrandom(where.mark.data(), where.mark.size(), 0) !=
      static_cast<ssize_t>(where.mark.size())) {
    ::munmap(mapped, sizeof(page));
    return nullptr;
  }
  mapped->mark = where.mark;
  return std::unique_ptr<host_memory>(
      new host_memory(std::move(memory), std::move(roll), mapped, where));
}

std::unique_ptr<host_memory> host_memory::find(const ticket& where) {
  if (where.process == 0) return nullptr;
  os::descriptor memory = file_of(where.process, where.memory);
  os::descriptor roll = file_of(where.process, where.roll);
  struct stat about {};
  if (!memory || !roll || ::fstat(roll.get(), &about) != 0 || about.st_size != sizeof(page))
    return nullptr;
  page* const mapped = map(roll.get());
  if (mapped == nullptr) return nullptr;
  auto found = std::unique_ptr<host_memory>(
      new host_memory(std::move(memory), std::move(roll), mapped, where));
  return mapped->mark == where.mark ? std::move(found) : nullptr;
}

void host_memory::leave(unsigned place) noexcept {
  // Pairs with has_left(), which others call when the kernel has told them of our end.
  page_->left.at(place).store(1, std::memory_order_release);
}

bool host_memory::has_left(unsigned place) const noexcept {
  return page_->left.at(place).load(std::memory_order_acquire) != 0;
}

}  // namespace strata::launch::pmix

// SPDX-License-Identifier: Apache-2.0
#include "os/own_thread.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "os/system_call.hpp"
#include "strata/detail/cpu.hpp"

namespace strata::os {
namespace {

// Never more than there are: each counts itself.
constinit std::atomic<long> own_threads{0};
// Of the process: a fork's child is another, and those of its parent are not counted there.
constinit std::atomic<unsigned> process_generation{0};

#if !defined(STRATA_TSAN)
// These take no memory, and are no points of cancellation.
long open_in(long folder, const char* name, long flags) noexcept {
  return system_call(SYS_openat, folder, reinterpret_cast<long>(name), flags | O_CLOEXEC, 0, 0, 0);
}
void close_it(long fd) noexcept { system_call(SYS_close, fd, 0, 0, 0, 0, 0); }

// Of io_uring and the like: the kernel ends it with the process, which is over without it.
bool is_of_kernel(long tasks, const char* number) noexcept {
  constexpr unsigned io_worker = 0x10;
  constexpr unsigned user_worker = 0x4000;
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "%.16s/stat", number);
  const long fd = open_in(tasks, path.data(), O_RDONLY);
  if (fd < 0) return false;
  std::array<char, 512> text{};
  const long length = system_call(SYS_read, fd, reinterpret_cast<long>(text.data()),
                                  static_cast<long>(text.size() - 1), 0, 0, 0);
  close_it(fd);
  // Behind the name, in which there may be anything: state, four numbers and one more, the flags.
  const char* const behind = length > 0 ? std::strrchr(text.data(), ')') : nullptr;
  unsigned flags = 0;
  return behind != nullptr && std::sscanf(behind, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
         (flags & (io_worker | user_worker)) != 0;
}

// Whether more than `known` threads are not the kernel's. True where that cannot be told. Looks at
// no more of them than it has to.
bool has_more_than(long known) noexcept {
  struct entry {
    std::uint64_t number;
    std::int64_t next;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  const long tasks = open_in(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
  if (tasks < 0) return true;
  alignas(entry) std::array<char, 1024> part{};
  long found = 0;
  long length = 0;
  while (found <= known &&
         (length = system_call(SYS_getdents64, tasks, reinterpret_cast<long>(part.data()),
                               static_cast<long>(part.size()), 0, 0, 0)) > 0) {
    for (long at = 0; at < length && found <= known;) {
      const auto* const e = reinterpret_cast<const entry*>(part.data() + at);
      if (e->name[0] != '.' && !is_of_kernel(tasks, e->name)) ++found;
      at += e->length;
    }
  }
  close_it(tasks);
  return found > known || length < 0;
}
#endif

}  // namespace

own_thread::own_thread(const char* name) noexcept
    : generation_(process_generation.load(std::memory_order_relaxed)) {
  own_threads.fetch_add(1, std::memory_order_seq_cst);
  pthread_setname_np(pthread_self(), name);
}
own_thread::~own_thread() {
  if (generation_ == process_generation.load(std::memory_order_relaxed))
    own_threads.fetch_sub(1, std::memory_order_seq_cst);
}

bool has_other_threads() noexcept {
#if defined(STRATA_TSAN)
  return false;  // ThreadSanitizer has one of its own, always
#else
  // A directory with one for each: that takes no descriptor and no memory.
  // Only where it says that there are more is each of them asked whether it is the kernel's.
  constexpr long links_without_threads = 2;
  constexpr long first = 1;
  const int error = errno;
  struct stat about {};
  const long before = own_threads.load(std::memory_order_seq_cst);
  const bool is_told = stat("/proc/self/task", &about) == 0;
  const long after = own_threads.load(std::memory_order_seq_cst);
  errno = error;
  // The smaller one: one of ours that has ended between is all but never in either.
  const long known = first + std::min(before, after);
  return is_told && static_cast<long>(about.st_nlink) - links_without_threads > known &&
         has_more_than(known);
#endif
}

void forget_own_threads() noexcept {
  process_generation.fetch_add(1, std::memory_order_relaxed);
  own_threads.store(0, std::memory_order_relaxed);
}

}  // namespace strata::os

// SPDX-License-Identifier: Apache-2.0
#include "pthread/process_end.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "os/clock.hpp"
#include "os/process_folder.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

// A name: 22 bits of the process's number, which Linux has no more of, 20 bits of when that began,
// and the record's number.
constexpr unsigned stamp_bits = 20;
constexpr unsigned process_at = stamp_bits + record_index_bits;
constexpr std::uintptr_t stamp_mask = (std::uintptr_t{1} << stamp_bits) - 1;
static_assert(process_at == 42);

// A container that begins anew gives its processes the numbers that others had.
std::uintptr_t stamp() noexcept {
  // About a millisecond: a process does not begin twice in one.
  static const auto own = static_cast<std::uintptr_t>(os::now_ns() >> 20) & stamp_mask;
  return own;
}

// What the kernel tells a parent, and leaves there for it.
bool is_ended_child(int process) noexcept {
  siginfo_t how{};
  return syscall(SYS_waitid, P_PID, process, &how, WEXITED | WNOHANG | WNOWAIT, nullptr) == 0 &&
         how.si_pid == process;
}

// Ended, and kept for its parent. Not by a descriptor: a program may count on the numbers of those.
// A process's first thread that has ended before others has no executable either, but others.
bool is_zombie(int process) noexcept {
  if (!os::has_proc_our_numbers()) return is_ended_child(process);
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/exe", process);
  char first = 0;
  if (readlink(path.data(), &first, 1) >= 0 || errno != ENOENT) return false;
  std::snprintf(path.data(), path.size(), "/proc/%d/task", process);
  constexpr nlink_t links_with_one_thread = 3;
  struct stat about {};
  return stat(path.data(), &about) == 0 && about.st_nlink == links_with_one_thread;
}

}  // namespace

std::uintptr_t name_among_processes(std::uint32_t record_index) noexcept {
  return static_cast<std::uintptr_t>(getpid()) << process_at | stamp() << record_index_bits |
         record_index;
}

bool has_process_ended(std::uintptr_t name) noexcept {
  const auto process = static_cast<int>(name >> process_at);
  if (process == getpid()) return (name >> record_index_bits & stamp_mask) != stamp();
  const kept_errno keep;
  return (kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process);
}

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
#include "pthread/bell.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

const char mark_of_rings = 0;

// The child of a vfork(), which has our memory, may ring as well: that is for the sleeper, too.
// Relaxed: stored before the sleeper can be found.
constinit std::atomic<pid_t> process_of_sleeper{0};

// The C library's call does not tell what has been sent to a thread from what has not. -1: none
// came; also when the wait has been interrupted.
int take_from_kernel(const sigset_t& set, const timespec* limit, siginfo_t& info) noexcept {
  return static_cast<int>(syscall(SYS_rt_sigtimedwait, &set, &info, limit, (NSIG - 1) / 8));
}

}  // namespace

bool bell::is_marked(const siginfo_t& info) noexcept {
  return info.si_signo == number && info.si_code == SI_QUEUE &&
         info.si_value.sival_ptr == &mark_of_rings;
}

pid_t bell_signals::note_caller() noexcept {
  process_of_sleeper.store(getpid(), std::memory_order_relaxed);
  return static_cast<pid_t>(syscall(SYS_gettid));
}

// The child of a vfork() may have become another user.
bool bell_signals::can_ring(pid_t whom) noexcept {
  const pid_t process = process_of_sleeper.load(std::memory_order_relaxed);
  if (process == getpid()) [[likely]]
    return true;
  const kept_errno keep;
  return syscall(SYS_tgkill, process, whom, 0) == 0;
}

void bell_signals::send_ring(pid_t to) noexcept {
  siginfo_t info{};
  info.si_signo = ring_number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = const_cast<char*>(&mark_of_rings);
  syscall(SYS_rt_tgsigqueueinfo, process_of_sleeper.load(std::memory_order_relaxed), to,
          ring_number, &info);
}

// Where the kernel has no room for what there is to say it keeps the number alone. For what kill()
// sends it always has.
bool bell_signals::is_ring(const siginfo_t& info) noexcept {
  const bool says_nothing = info.si_signo == ring_number && info.si_code == SI_USER &&
                            info.si_pid == 0 && info.si_uid == 0;
  return bell::is_marked(info) || says_nothing;
}

int bell_signals::await(const sigset_t& set, siginfo_t& info) noexcept {
  sigset_t all = set;
  sigaddset(&all, ring_number);
  return take_from_kernel(all, nullptr, info);
}

int bell_signals::await_ring(siginfo_t& info) noexcept {
  // For one that does not come, as the program has thrown it away.
  constexpr timespec long_enough{0, 10'000'000};
  return take_from_kernel(only(ring_number), &long_enough, info);
}

int bell_signals::look(const sigset_t& set, siginfo_t& info) noexcept {
  constexpr timespec at_once{0, 0};
  return take_from_kernel(set, &at_once, info);
}

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
#include "pthread/bell.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

const char mark_of_rings = 0;

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

void bell::begin() noexcept {
  // Release: from now on it can be told. Partner: sleeper().
  sleeper_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
}

void bell::send() const noexcept {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = const_cast<char*>(&mark_of_rings);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), sleeper(), number, &info);
}

void bell::ring() noexcept {
  // Seq_cst, before the look at the state: else we and the sleeper could miss each other. Partner:
  // sleep().
  rung_.store(true, std::memory_order_seq_cst);
  state expected = state::asleep;
  if (state_.compare_exchange_strong(expected, state::called, std::memory_order_seq_cst)) send();
}

void bell::ring_again() noexcept {
  ring();
  if (state_.load(std::memory_order_relaxed) == state::called) send();
}

// Where the kernel has no room for what there is to say it keeps the number alone. For what kill()
// sends it always has.
bool bell::is_ring(const siginfo_t& info) noexcept {
  const bool says_nothing =
      info.si_signo == number && info.si_code == SI_USER && info.si_pid == 0 && info.si_uid == 0;
  return is_marked(info) || says_nothing;
}

void bell::wake_up() noexcept {
  state expected = state::asleep;
  // Relaxed: what a ring tells of goes by rung_.
  if (!state_.compare_exchange_strong(expected, state::awake, std::memory_order_relaxed))
    is_coming_ = true;
}

void bell::take_ring() noexcept {
  is_coming_ = false;
  state_.store(state::awake, std::memory_order_relaxed);
}

bool bell::has_rung() noexcept {
  // Seq_cst: see ring().
  return rung_.load(std::memory_order_relaxed) && rung_.exchange(false, std::memory_order_seq_cst);
}

int bell::sleep(const sigset_t& set, siginfo_t& info) noexcept {
  sigset_t all = set;
  sigaddset(&all, number);
  for (;;) {
    if (has_kept_) return look(set, info);
    // Seq_cst, before the look: see ring(). Where a ring is on its way it stays `called`: that one
    // wakes us, whatever it is about.
    if (!is_coming_) state_.store(state::asleep, std::memory_order_seq_cst);
    if (rung_.exchange(false, std::memory_order_seq_cst)) {
      if (!is_coming_) wake_up();
      return 0;
    }
    const int found = take_from_kernel(all, nullptr, info);
    // What has woken us is not there any more: if it was a ring none comes.
    if (found < 0 || is_ring(info)) {
      take_ring();
      continue;
    }
    if (!is_coming_) wake_up();
    return found;
  }
}

int bell::look(const sigset_t& set, siginfo_t& info) noexcept {
  if (has_kept_) {
    has_kept_ = false;
    info = kept_;
    return number;
  }
  constexpr timespec at_once{0, 0};
  for (;;) {
    const int found = take_from_kernel(set, &at_once, info);
    if (found < 0) return 0;
    if (!is_ring(info)) return found;
    take_ring();
  }
}

void bell::quieten() noexcept {
  // For one that does not come, as the program has thrown it away.
  constexpr timespec long_enough{0, 10'000'000};
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, number);
  while (is_coming_) {
    siginfo_t info;
    const int found = take_from_kernel(it, &long_enough, info);
    if (found < 0 || is_ring(info)) {
      take_ring();
    } else {
      has_kept_ = true;
      kept_ = info;
    }
  }
}

}  // namespace strata::detail::posix

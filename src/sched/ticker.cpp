// SPDX-License-Identifier: Apache-2.0
#include "sched/ticker.hpp"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "context/interrupted.hpp"
#include "os/clock.hpp"
#include "os/own_thread.hpp"
#include "sched/scheduler.hpp"
#include "strata/error.hpp"

namespace strata::detail {
namespace {

// Whose default is to be ignored, so a late one does no harm.
constexpr int tick_signal = SIGURG;

// Above the interrupted stack pointer's lower end there must be room for what the handler calls;
// the kernel's own frame is there already.
constexpr std::uintptr_t handler_bytes = 4096;

struct range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// The code of the program itself: the first object that the dynamic linker knows.
range program_code() {
  range found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& r = *static_cast<range*>(out);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& h = info->dlpi_phdr[i];
          if (h.p_type != PT_LOAD || (h.p_flags & PF_X) == 0) continue;
          r = {info->dlpi_addr + h.p_vaddr, info->dlpi_addr + h.p_vaddr + h.p_memsz};
        }
        return 1;
      },
      &found);
  return found;
}

// Found before anything can be interrupted.
const range& code() {
  static const range found = program_code();
  return found;
}

bool is_in_program(std::uintptr_t at) noexcept { return code().begin <= at && at < code().end; }

[[gnu::noinline]] int read_errno() noexcept { return errno; }
[[gnu::noinline]] void write_errno(int error) noexcept { errno = error; }

void let_ticks_in() noexcept {
  sigset_t ticks;
  sigemptyset(&ticks);
  sigaddset(&ticks, tick_signal);
  pthread_sigmask(SIG_UNBLOCK, &ticks, nullptr);
}

void on_tick(int, siginfo_t*, void* machine) {
  worker& w = this_worker();
  if (w.owner == nullptr || !w.preemptible.load(std::memory_order_relaxed)) return;
  const interrupted i = interrupted_by(machine);
  auto& p = static_cast<place&>(w);
  const auto bottom = reinterpret_cast<std::uintptr_t>(p.current->bottom);
  if (!is_in_program(i.at)) return;
  if (i.stack < bottom || stack_pointer() < bottom + handler_bytes) return;
  const int error = read_errno();
  // Others run on this OS thread before we return, and may be interrupted, too. Until here a tick
  // had to wait: it would have seen our code, not what is below.
  p.preemptible.store(false, std::memory_order_relaxed);
  let_ticks_in();
  p.give_way();
  // Back, perhaps on another OS thread. The next tick has to wait until the kernel has gone back to
  // what this one has interrupted, or it might move us once more, with what is kept here.
  keep_what_is_now(machine, std::uint64_t{1} << (tick_signal - 1));
  write_errno(error);
  this_worker().preemptible.store(true, std::memory_order_relaxed);
}

}  // namespace

bool ticker::is_safe() noexcept {
#if defined(STRATA_TSAN)
  return false;
#else
  static const bool safe = !is_in_program(reinterpret_cast<std::uintptr_t>(&std::malloc)) &&
                           !is_in_program(reinterpret_cast<std::uintptr_t>(&std::terminate));
  return safe;
#endif
}

void ticker::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  alive_.fetch_add(1, std::memory_order_release);
  os::futex_wake(alive_, 1);
  thread_.join();
}

void ticker::prepare() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours;
    std::memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = &on_tick;
    // Not on the signal stack: the frame stays on the thread's own.
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(tick_signal, &ours, nullptr);
  });
  thread_ = std::thread([this] { run(); });
}

void ticker::run() {
  const os::own_thread here("strata-ticker");
  std::vector<std::uint64_t> seen;
  while (!stopping_.load(std::memory_order_acquire)) {
    if (alive_.load(std::memory_order_acquire) == 0) {
      os::blocking_futex_wait(alive_, 0);
      continue;
    }
    timespec interval{interval_ns_ / 1'000'000'000, interval_ns_ % 1'000'000'000};
    nanosleep(&interval, nullptr);
    try {
      seen.resize(scheduler_.workers());
    } catch (const std::bad_alloc&) {
      continue;  // nobody is interrupted until there is memory
    }
    scheduler_.preempt_long_ones(seen);
  }
}

bool scheduler::has_run_for_long(const place& p, std::uint64_t& steps) const noexcept {
  const std::uint64_t now = steps_of(p);
  if (std::exchange(steps, now) != now) return false;
  return !p.ready.empty() || p.has_batches() || p.deque.maybe_work() || p.has_bound() ||
         waived_for(p) || injected_.has_any();
}

void scheduler::preempt_long_ones(std::vector<std::uint64_t>& seen) noexcept {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    place& p = *places_[i];
    if (!has_run_for_long(p, seen[i]) || !p.preemptible.load(std::memory_order_relaxed)) continue;
    // A number that belongs to another thread by now is that of one whose handler does nothing.
    syscall(SYS_tgkill, getpid(), p.os_thread.load(std::memory_order_relaxed), tick_signal);
  }
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/own_signal.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "os/system_call.hpp"
#include "pthread/preload/interrupted_call.hpp"
#include "pthread/preload/ticks.hpp"

namespace strata::preload {
namespace {

constexpr int own_signal = 32;

// Of this OS thread. Relaxed, both: by itself, in the handler, too.
thread_local constinit std::atomic<bool> calls_end
    __attribute__((tls_model("initial-exec"))){false};
thread_local constinit std::atomic<std::uint32_t> endings
    __attribute__((tls_model("initial-exec"))){0};

#if defined(__x86_64__)
// As the kernel wants it, and in the instructions by which those know it who unwind stacks.
extern "C" void strata_end_own_signal() __asm__("strata_end_own_signal")
    __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".hidden strata_end_own_signal\n"
    ".type strata_end_own_signal, @function\n"
    "strata_end_own_signal:\n"
    "  movq $15, %rax\n"
    "  syscall\n"
    ".size strata_end_own_signal, . - strata_end_own_signal\n");
#endif

void on_own_signal(int, siginfo_t* info, void* machine) {
  if (info->si_code == SI_TIMER) return on_tick(machine);
  if (!calls_end.load(std::memory_order_relaxed)) return;
  endings.fetch_add(1, std::memory_order_relaxed);
  end_call(*static_cast<ucontext_t*>(machine));
}

// What the C library refuses to set for others. Not blocked while the handler runs: others go on
// from there.
void set_handler() noexcept {
  struct {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } action{&on_own_signal, SA_SIGINFO | SA_RESTART | SA_NODEFER, nullptr, 0};
#if defined(__x86_64__)
  constexpr unsigned long has_restorer = 0x0400'0000;
  action.flags |= has_restorer;
  action.restorer = &strata_end_own_signal;
#endif
  (void)os::system_call(SYS_rt_sigaction, own_signal, reinterpret_cast<long>(&action), 0,
                        sizeof action.mask, 0, 0);
}

}  // namespace

void begin_own_signal() noexcept {
  static const bool is_set = (set_handler(), true);
  (void)is_set;
}

void end_call_of(int os_thread) noexcept {
  (void)os::system_call(SYS_tgkill, getpid(), os_thread, own_signal, 0, 0, 0);
}

void let_calls_end(bool may) noexcept { calls_end.store(may, std::memory_order_relaxed); }

std::uint32_t endings_of_calls_here() noexcept { return endings.load(std::memory_order_relaxed); }

bool begin_ticks_of_os_thread(std::int64_t interval_ns) noexcept {
  begin_own_signal();
  sigevent how{};
  how.sigev_notify = SIGEV_THREAD_ID;
  how.sigev_signo = own_signal;
  how._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  int timer = 0;  // as the kernel numbers them
  if (os::system_call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, reinterpret_cast<long>(&how),
                      reinterpret_cast<long>(&timer), 0, 0, 0) != 0)
    return false;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const timespec each{interval_ns / ns_per_s, interval_ns % ns_per_s};
  const itimerspec when{each, each};
  return os::system_call(SYS_timer_settime, timer, 0, reinterpret_cast<long>(&when), 0, 0, 0) == 0;
}

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
#include "context/stopped.hpp"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "os/no_signals.hpp"
#include "os/system_call.hpp"

namespace strata::detail {
namespace {

#if defined(STRATA_TSAN)
constexpr bool thread_sanitizer_watches = true;  // it would take the child for the thread
#else
constexpr bool thread_sanitizer_watches = false;
#endif
constexpr std::size_t child_stack_bytes = 64 * 1024;
constexpr int looks_max = 100;  // a millisecond apart
constexpr std::size_t red_zone_bytes = 128;

// What the child is asked, and answers.
struct request {
  int thread;
  std::uintptr_t top;
  std::span<std::byte> memory;
  user_regs_struct machine{};
  stack_copy stack{};
  long error = 0;
};

template <class... A>
long call(long number, A... a) noexcept {
  std::array<long, 6> all{static_cast<long>(a)...};
  return os::system_call(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}
template <class T>
long address(T* p) noexcept {
  return reinterpret_cast<long>(p);
}

std::uintptr_t stack_pointer_of(const user_regs_struct& m) noexcept {
#if defined(__x86_64__)
  return m.rsp;
#elif defined(__aarch64__)
  return m.sp;
#endif
}

stopped_frame frame_of(const user_regs_struct& m) noexcept {
  stopped_frame f;
#if defined(__x86_64__)
  const std::array<unsigned long long, 16> by_number{m.rax, m.rdx, m.rcx, m.rbx, m.rsi, m.rdi,
                                                     m.rbp, m.rsp, m.r8,  m.r9,  m.r10, m.r11,
                                                     m.r12, m.r13, m.r14, m.r15};
  for (unsigned i = 0; i < by_number.size(); ++i) f.registers.set(i, by_number[i]);
  f.pc = m.rip;
#elif defined(__aarch64__)
  for (unsigned i = 0; i < 31; ++i) f.registers.set(i, m.regs[i]);
  f.registers.set(frame_registers::sp, m.sp);
  f.pc = m.pc;
#endif
  return f;
}

// Here and below: in the child. It has the stack that it was given, and all else with its parent,
// whose thread waits meanwhile: no function of the C library, and nothing that throws.

// 0: stopped; `signal` is what the thread was about to be sent, which is ours to pass on.
long await_stop(const request& r, long& signal) noexcept {
  for (int i = 0; i < looks_max; ++i) {
    int status = 0;
    const long who = call(SYS_wait4, r.thread, address(&status), __WALL | WNOHANG, 0);
    if (who < 0) return who;
    if (who == r.thread) {
      if (!WIFSTOPPED(status)) return -ESRCH;
      const bool is_our_stop = status >> 16 == PTRACE_EVENT_STOP;
      signal = is_our_stop ? 0 : WSTOPSIG(status);
      return 0;
    }
    const timespec moment{0, 1'000'000};
    call(SYS_nanosleep, address(&moment), 0);
  }
  return -ETIMEDOUT;
}

long copy_what_is_there(request& r) noexcept {
  iovec machine{&r.machine, sizeof r.machine};
  const long error = call(SYS_ptrace, PTRACE_GETREGSET, r.thread, NT_PRSTATUS, address(&machine));
  if (error < 0) return error;
  const std::uintptr_t sp = stack_pointer_of(r.machine);
  if (sp >= r.top) return 0;
  // What lies below is read, too, where a function has just taken it from its stack; if there is
  // such a page.
  for (const std::uintptr_t begin : {sp - red_zone_bytes, sp}) {
    const std::size_t bytes = std::min<std::size_t>(r.top - begin, r.memory.size());
    const iovec here{r.memory.data(), bytes};
    const iovec there{reinterpret_cast<void*>(begin), bytes};
    // Where nothing can be read it is an error and no fault.
    const long n = call(SYS_process_vm_readv, r.thread, address(&here), 1, address(&there), 1, 0);
    if (n <= 0) continue;
    r.stack = {begin, r.memory.first(static_cast<std::size_t>(n))};
    break;
  }
  return 0;
}

int look(void* argument) {
  auto& r = *static_cast<request*>(argument);
  long signal = 0;
  r.error = call(SYS_ptrace, PTRACE_SEIZE, r.thread, 0, 0);
  if (r.error < 0) return 0;
  r.error = call(SYS_ptrace, PTRACE_INTERRUPT, r.thread, 0, 0);
  if (r.error == 0) r.error = await_stop(r, signal);
  if (r.error < 0) return 0;  // our end lets it go
  r.error = copy_what_is_there(r);
  call(SYS_ptrace, PTRACE_DETACH, r.thread, 0, signal);
  return 0;
}

bool ask(request& r) {
  static_assert(child_stack_bytes % 16 == 0);
  const auto stack = std::make_unique<std::byte[]>(child_stack_bytes);
  // A handler of the program would run in the child, too.
  const os::no_signals there;
  // No signal at its end, so the program's own waits for children do not see it.
  const int child = clone(&look, stack.get() + child_stack_bytes, CLONE_VM | CLONE_VFORK, &r);
  if (child < 0) return false;
  while (call(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
  }
  return r.error == 0;
}

}  // namespace

std::optional<stopped_frame> stop_and_look(int os_thread, std::uintptr_t top,
                                           std::span<std::byte> memory) {
  if (thread_sanitizer_watches) return std::nullopt;
  request r{.thread = os_thread, .top = top, .memory = memory};
  bool seen = ask(r);
  if (!seen && r.error == -EPERM) {
    // Yama lets only those trace a process that it has named, and its parents.
    if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0) return std::nullopt;
    seen = ask(r);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  }
  if (!seen) return std::nullopt;
  stopped_frame f = frame_of(r.machine);
  f.stack = r.stack;
  return f;
}

}  // namespace strata::detail

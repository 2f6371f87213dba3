// SPDX-License-Identifier: Apache-2.0
// A call is interrupted by the signal with which the C library cancels kernel threads: nobody ever
// blocks it, programs cannot have it, and there are no kernel threads here that somebody cancels.
#include "pthread/preload/elsewhere.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "os/system_call.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

constexpr int interruption = 32;

#if defined(__x86_64__)
// As the kernel wants it, and in the instructions by which those know it who unwind stacks.
extern "C" void strata_end_interruption() __asm__("strata_end_interruption")
    __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".hidden strata_end_interruption\n"
    ".type strata_end_interruption, @function\n"
    "strata_end_interruption:\n"
    "  movq $15, %rax\n"
    "  syscall\n"
    ".size strata_end_interruption, . - strata_end_interruption\n");
#endif

void nothing(int) {}

// What the C library refuses to set for others. Without SA_RESTART: calls end.
void make_ready() noexcept {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } action{&nothing, 0, nullptr, 0};
#if defined(__x86_64__)
  constexpr unsigned long has_restorer = 0x0400'0000;
  action.flags = has_restorer;
  action.restorer = &strata_end_interruption;
#endif
  (void)os::system_call(SYS_rt_sigaction, interruption, reinterpret_cast<long>(&action), 0,
                        sizeof action.mask, 0, 0);
}

}  // namespace

void kernel_thread::begin() noexcept {
  static const bool is_ready = (make_ready(), true);
  (void)is_ready;
  // Relaxed: who is not seen yet is looked for again.
  number_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
}

bool kernel_thread::disturb(detail::unparked why) noexcept {
  bool has_to = has_to_end_.load(std::memory_order_relaxed) || why == detail::unparked::interrupted;
  if (why == detail::unparked::signalled) {
    const posix::record* const r = posix::self_if_any();
    has_to = has_to || what_ == ended_by::handlers || r == nullptr || !r->restarts;
  }
  has_to_end_.store(has_to, std::memory_order_relaxed);
  const pid_t number = number_.load(std::memory_order_relaxed);
  if (has_to && number != 0) syscall(SYS_tgkill, getpid(), number, interruption);
  return has_to;
}

void act_on_what_ended_it() {
  const posix::kept_errno keep;
  posix::act_on_cancellation();
}

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// Signals belong to OS threads. A lightweight thread has the set that it has blocked, and what was
// sent to it: handlers run on its own stack, when it waits, comes back from a wait, or asks for
// cancellation. What is sent to the process goes to the OS thread that runs the program's main(),
// or to the taker (signal_taker.hpp).
#pragma once
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "pthread/record.hpp"

namespace strata::detail::posix {

// Runs the handlers of the signals that it has been sent and has not blocked. By the thread itself.
void deliver_signals(record& r);
// While one exists a handler runs for r below `from`, unless that is left by siglongjmp(): then
// nothing is undone here, and the record says all that there is to know. Only the outermost one on
// the thread's own stack is noted. `running`, `added`: what running_handlers and added_by_handlers
// were before.
class running_handler {
 public:
  running_handler(record& r, std::uintptr_t from, std::uint64_t running,
                  std::uint64_t added) noexcept;
  ~running_handler() {
    if (is_outermost_) r_.handlers_below = 0;
  }
  running_handler(const running_handler&) = delete;
  running_handler& operator=(const running_handler&) = delete;

 private:
  record& r_;
  const bool is_outermost_;
};
// What a handler that has been left by siglongjmp() has blocked ends as well, and its signal comes
// again: when the thread asks for its mask, changes it, sends itself a signal or waits, and does so
// from where the handler cannot be any more, which is no deeper on the stack than it was called. By
// the thread itself, before all of that.
void forget_handlers(record& r) noexcept;
[[nodiscard]] bool cannot_be_in_handler(const record& r, std::uintptr_t frame) noexcept;
[[gnu::always_inline]] inline bool has_left_handlers(const record& r) noexcept {
  return r.handlers_below != 0 &&
         cannot_be_in_handler(r, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}
[[gnu::always_inline]] inline void end_left_handlers(record& r) noexcept {
  if (has_left_handlers(r)) [[unlikely]]
    forget_handlers(r);
}
// The same for those that `mask` lets in, as if it were the thread's; and whether there are any.
void deliver_signals_with(record& r, const sigset_t& mask);
[[nodiscard]] bool has_signals_beyond(record& r, const sigset_t& mask) noexcept;
// The calling thread has written to where nobody reads any more, and the kernel has told its worker
// so by SIGPIPE, unless it was asked not to: it is the thread's. errno stays as it is.
void take_broken_pipe();
// Of a record that has just been taken: from now on its thread can be offered signals.
void begin_mask(record& r, const sigset_t& mask, bool is_os_thread) noexcept;
// Of a thread that has not begun: what it inherits as unblocked, the process's signals reach.
void inherit_signals(record& r, const record& parent);
// It ends, and takes no more signals.
void end_signals(record& r) noexcept;

// A thread has been sent a signal for its handler by another one, at some time. Relaxed: asked
// again and again, by those who would pay for looking whether it was they.
extern constinit std::atomic<bool> any_was_sent;

// The thread that runs main() under the command, where one does; null in all other programs.
extern constinit std::atomic<record*> main_record;

// As pthread_sigmask(), but for the handlers of what is unblocked by it. By the thread itself, in a
// runtime, with arguments that are right.
void change_mask(record& r, int how, const sigset_t* set, sigset_t* before);

// The calling thread has left what it ran, maybe out of a handler, whose mask the kernel has not
// taken back: where main() may run on this OS thread, it finds its own again.
void put_back_mask_of_main() noexcept;

// A handler's changes of the mask end with it. By the thread itself.
struct kept_mask {
  sigset_t blocked;
  sigset_t blocked_by_program;
  sigset_t opened;
};
[[nodiscard]] kept_mask keep_mask(record& r) noexcept;
void restore_mask(record& r, const kept_mask& before);

// ---- for signals*.cpp ----
[[nodiscard]] inline bool has_signal(const sigset_t& set, int number) noexcept {
  return sigismember(&set, number) == 1;
}
[[nodiscard]] inline sigset_t only(int number) noexcept {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  return one;
}
// The same as bits.
[[nodiscard]] constexpr std::uint64_t signal_bit(int number) noexcept {
  return std::uint64_t{1} << (number - 1);
}
static_assert(NSIG - 1 <= 64);
// What `how` has blocked while the handler of `number` runs.
[[nodiscard]] std::uint64_t blocked_by(int number, const struct sigaction& how) noexcept;
// What the kernel would say of one that this process sends to one of its threads.
[[nodiscard]] siginfo_t about_signal(int number, const sigval* value) noexcept;
// With r.more.lock, as the next four. Also in handlers: none asks for memory of malloc(). False: of
// a real-time signal that has not been kept, as there is no memory.
bool add_pending(record& r, const siginfo_t& info) noexcept;
// The lowest number of those in `set`; 0: none.
int take_pending(record& r, const sigset_t& set, siginfo_t& info);
// Also of what is held for the process (held_signals.hpp).
[[nodiscard]] bool has_to_handle(record& r) noexcept;
// It runs the handler of that one, which may be interrupted by another. Also without the lock.
[[nodiscard]] inline bool runs_handler_of(const record& r, int number) noexcept {
  // Seq_cst: see will_handle() in signal_offers.cpp.
  return (r.running_handlers.load(std::memory_order_seq_cst) & signal_bit(number)) != 0;
}
// That one has been taken, for which the taker may wait.
void tell_taken(record& r, int number) noexcept;
// That it does not take what it has been offered.
void decline_offer(record& r) noexcept;
// It waits for this one on an OS thread: that gets it, or finds it pending where the kernel has no
// room. Answers as add_pending().
bool forward_to_waiter(record& r, const siginfo_t& info) noexcept;
[[nodiscard]] sigset_t unblocked(const record& r) noexcept;
// There is a handler, and what it asks for.
[[nodiscard]] bool is_handled(int number, struct sigaction& how) noexcept;
// Unblocks it for a moment: what is pending for the calling OS thread is handled.
void let_in(int number);
// Its handler, or what is done without one, here and now. 0 or the error.
int raise_here(siginfo_t& info);
// It is what raise_here() has sent to the calling OS thread, once: that is not left to others,
// whatever runs here.
[[nodiscard]] bool take_sent_here(int number) noexcept;

}  // namespace strata::detail::posix

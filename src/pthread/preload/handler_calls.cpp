// SPDX-License-Identifier: Apache-2.0
// Where a signal's handler is to run, and that it does, or is left to the taker: by what the kernel
// calls, wherever that interrupts.
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "context/interrupted.hpp"
#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/preload/asked_handlers.hpp"
#include "pthread/preload/ticks.hpp"
#include "pthread/reminders.hpp"
#include "pthread/signal_taker.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/detail/cpu.hpp"

// This library's own code, by the linker.
extern "C" {
extern char own_code_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern char own_code_end[] __asm__("etext") __attribute__((visibility("hidden")));
}

namespace strata::preload {

constinit std::array<asked, NSIG> asked_for{};

namespace {

namespace posix = detail::posix;

// Of this OS thread. Relaxed: by itself, and by what interrupts it.
thread_local constinit std::atomic<std::uint32_t> handlers_called
    __attribute__((tls_model("initial-exec"))){0};
[[gnu::noinline]] void count_handler() noexcept {
  handlers_called.fetch_add(1, std::memory_order_relaxed);
}

bool is_own_code(std::uintptr_t at) noexcept {
  return at >= reinterpret_cast<std::uintptr_t>(own_code_begin) &&
         at < reinterpret_cast<std::uintptr_t>(own_code_end);
}

enum class place_for_it : std::uint8_t { here, main_here, the_taker, whom_it_concerns, nowhere };

// A handler that runs for main() on the taker's OS thread has blocked it.
bool is_blocked_elsewhere(const posix::record& main, int number) noexcept {
  // Seq_cst: see call_on_main(). Partner: will_handle() in signal_offers.cpp.
  return main.handled_elsewhere.load(std::memory_order_seq_cst) &&
         (main.blocked_elsewhere.load(std::memory_order_relaxed) & posix::signal_bit(number)) != 0;
}

// It comes to what is pending as soon as the handler ends that it runs. Relaxed, both: by the OS
// thread that it runs on, which is this.
bool looks_after_handler(const posix::record& main, const detail::worker& w) noexcept {
  return main.handles_in_section.load(std::memory_order_relaxed) &&
         !w.preemptible.load(std::memory_order_relaxed);
}

[[gnu::noinline]] place_for_it where(int number, siginfo_t& info, const void* machine) noexcept {
  if (posix::take_sent_here(number)) {
    // The kernel keeps one of a number, and one of ours may have come before.
    if (posix::is_reminder(info) || posix::is_for_taker(info))
      info = posix::about_signal(number, nullptr);
    return place_for_it::here;
  }
  if (posix::is_for_taker(info)) return place_for_it::nowhere;
  // To this very OS thread: by who knows it.
  if (info.si_code == SI_TKILL && info.si_pid == getpid()) return place_for_it::here;
  // Acquire: the record as it was when it became main()'s. Partner: run_main() in start.cpp.
  posix::record* const main = posix::main_record.load(std::memory_order_acquire);
  if (main == nullptr || main->is_os_thread) return place_for_it::here;
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr)
    return posix::is_process_thread() ? place_for_it::the_taker : place_for_it::here;
  // The kernel delivers it: no handler that has blocked it runs here any more, where those of
  // main() do. Other workers let in what is for somebody else.
  if (posix::runs_on_process_thread())
    main->added_by_handlers.fetch_and(~posix::signal_bit(number), std::memory_order_relaxed);
  const detail::stack* const runs = static_cast<const detail::place&>(w).current;
  const bool is_main = runs != nullptr && runs->thread == static_cast<detail::thread_block*>(main);
  // It has blocked it, not for a handler alone: when it ran on another OS thread than this one, or
  // this is a worker that has let one in for somebody else. Only the process's own thread may give
  // it back, with what the kernel has said of it.
  if (!is_main && posix::has_signal(main->blocked_by_program, number))
    return posix::runs_on_process_thread() ? place_for_it::whom_it_concerns
                                           : place_for_it::the_taker;
  // Only main() is marked, see start.cpp. Relaxed: by the OS thread that it runs on, which is this.
  const bool can_be_interrupted = is_main && w.preemptible.load(std::memory_order_relaxed) &&
                                  !is_own_code(detail::interrupted_by(machine).at);
  if (can_be_interrupted && !is_blocked_elsewhere(*main, number)) return place_for_it::main_here;
  // The taker still waits for main(), which finds what it has been offered where it runs.
  if (posix::is_reminder(info) && posix::tell_reminded_in_vain(number)) {
    main->more.signalled.store(true, std::memory_order_relaxed);
    return place_for_it::nowhere;
  }
  // Not to and fro between the taker and us as long as that handler runs.
  if (is_main && posix::is_reminder(info) && looks_after_handler(*main, w))
    return place_for_it::nowhere;
  // It has left that handler by siglongjmp(), or runs it elsewhere and comes to this one there.
  if (!is_main && posix::is_reminder(info))
    main->running_handlers.fetch_and(~posix::signal_bit(number), std::memory_order_relaxed);
  // It begins no wait until the taker has offered it. Partner: deliver_signals().
  main->more.signalled.store(true, std::memory_order_relaxed);
  return place_for_it::the_taker;
}

// Handlers with one argument do not look at the others: those of all lie in registers.
// `forgets`: one that is for once is forgotten before, which the kernel has not been asked for.
void call_handler(int number, siginfo_t* info, void* machine, bool forgets = true) {
  asked& a = asked_for[static_cast<std::size_t>(number)];
  // Acquire: with the flags. Partner: set_action().
  const three_arguments handler = a.handler.load(std::memory_order_acquire);
  if (forgets && (a.flags.load(std::memory_order_relaxed) & reset_once) != 0) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, nullptr);
  }
  if (handler == nullptr) return;
  count_handler();
  const in_handler here(__builtin_frame_address(0));
  handler(number, info, machine);
}

// From here on blocked until sigreturn, also with SA_NODEFER: what the taker reminds main() of may
// come at once, and would come on top of us, and again on top of that, up to the stack's end.
bool leave(int number, const siginfo_t& info) noexcept {
  const sigset_t one = posix::only(number);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &one, &before);
  if (posix::leave_to_taker(info)) return true;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return false;
}

// As sigreturn does: what the handler of main() changes of the mask, and what the kernel has added
// to it, ends with the handler. Left to the taker, if it may be, where that has begun with a
// handler that has blocked this one: we say what is blocked here, and look whether it has begun; it
// says that it begins, and looks what is blocked here.
void call_on_main(posix::record& main, int number, siginfo_t* info, void* machine, bool may_leave) {
  // What one that was left has blocked is not to be kept, and put back.
  posix::end_left_handlers(main);
  const posix::kept_mask mask = posix::keep_mask(main);
  const std::uint64_t before = main.added_by_handlers.load(std::memory_order_relaxed);
  std::uint64_t added = before;
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  const sigset_t& interrupted = static_cast<const ucontext_t*>(machine)->uc_sigmask;
  for (int other = 1; other < NSIG; ++other) {
    if (posix::has_signal(now, other) && !posix::has_signal(interrupted, other))
      added |= posix::signal_bit(other);
  }
  const std::uint64_t running = main.running_handlers.load(std::memory_order_relaxed);
  // Seq_cst, both, before the look: else each could miss the other. Partner: will_handle() in
  // signal_offers.cpp.
  main.running_handlers.store(running | posix::signal_bit(number), std::memory_order_seq_cst);
  main.added_by_handlers.store(added, std::memory_order_seq_cst);
  if (may_leave && is_blocked_elsewhere(main, number) && leave(number, *info)) {
    main.more.signalled.store(true, std::memory_order_relaxed);
  } else {
    const posix::running_handler here(main, detail::stack_pointer(), running, before);
    call_handler(number, info, machine);
  }
  main.running_handlers.store(running, std::memory_order_relaxed);
  main.added_by_handlers.store(before, std::memory_order_relaxed);
  posix::restore_mask(main, mask);
  if (posix::held_signals() != 0) posix::ring_signal_taker();
}

[[gnu::noinline]] posix::record* main_that_runs_here() noexcept {
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr) return nullptr;
  // Acquire: as in where().
  posix::record* const main = posix::main_record.load(std::memory_order_acquire);
  const detail::stack* const runs = static_cast<const detail::place&>(w).current;
  return main != nullptr && runs != nullptr &&
                 runs->thread == static_cast<detail::thread_block*>(main) &&
                 posix::runs_on_process_thread()
             ? main
             : nullptr;
}

// From now on the OS thread has it blocked as well, and the process has it. Blocked before: with
// SA_NODEFER it would come back here at once.
void give_back(int number, siginfo_t* info, void* machine) noexcept {
  const sigset_t one = posix::only(number);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  sigaddset(&static_cast<ucontext_t*>(machine)->uc_sigmask, number);
  (void)syscall(SYS_rt_sigqueueinfo, getpid(), number, info);
}

[[gnu::noinline]] int read_errno_here() noexcept { return errno; }
[[gnu::noinline]] void write_errno_here(int error) noexcept { errno = error; }

// A handler of main() has ended here that another one has had to wait for: what that is told is
// pending. False: it has been handled since, or main() runs elsewhere, where it comes to it.
bool take_reminded(siginfo_t& info) {
  posix::record* const main = main_that_runs_here();
  if (main == nullptr) return false;
  const posix::holding lock(main->more.lock);
  return posix::take_pending(*main, posix::only(info.si_signo), info) != 0;
}

}  // namespace

[[gnu::noinline]] std::uint32_t handlers_called_here() noexcept {
  return handlers_called.load(std::memory_order_relaxed);
}

void on_signal_of_program(int number, siginfo_t* info, void* machine) {
  const int error = read_errno_here();
  const place_for_it place = where(number, *info, machine);
  if (place == place_for_it::nowhere) return write_errno_here(error);
  const bool is_late = posix::is_reminder(*info) && place != place_for_it::the_taker;
  if (is_late && (place == place_for_it::whom_it_concerns || !take_reminded(*info)))
    return write_errno_here(error);
  if (place == place_for_it::whom_it_concerns) {
    give_back(number, info, machine);
  } else if (place != place_for_it::the_taker || !leave(number, *info)) {
    posix::record* const main = main_that_runs_here();
    write_errno_here(error);
    return main != nullptr
               ? call_on_main(*main, number, info, machine, place == place_for_it::main_here)
               : call_handler(number, info, machine);
  }
  write_errno_here(error);
}

// Of those that are left alone. The kernel itself has forgotten one that is for once, and there may
// be another by now.
void on_signal_left_alone(int number, siginfo_t* info, void* machine) {
  call_handler(number, info, machine, false);
}

}  // namespace strata::preload

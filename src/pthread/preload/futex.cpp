// SPDX-License-Identifier: Apache-2.0
// The C library's syscall(). What waits in C++ without pthreads asks the kernel for futex(2)
// through it: std::future, std::atomic<T>::wait(), counting_semaphore, latch, barrier, and who
// needs a local static that another thread initialises. So do Rust's locks. A thread of ours that
// waited in the kernel would stop its worker; it is parked under the word's address instead.
//
// Who is not ours waits in the kernel, at the same word: whoever wakes looks among ours first, and
// leaves the rest to the kernel. Each kind compares the word with what it expects under the lock of
// the queue in which wakers look for it, so a waker that has changed the word before is missed by
// neither.
//
// A word that is not called private may lie in memory that processes share, whose wake-ups only the
// kernel hears of. The C++ library calls none private, and hardly any is shared: we know which
// memory is (shared_memory.cpp), and for a word in there a thread looks again from time to time.
// Kernel threads that wait in its place could be too many, and a handler could not end such a wait.
//
// Not for us: locks with priority inheritance, whose owners are kernel threads, and futex_waitv(2).
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <ctime>
#include <exception>

#include "os/clock.hpp"
#include "pthread/preload/allocators.hpp"
#include "pthread/preload/closing.hpp"
#include "pthread/preload/handlers.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/shared_memory.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "threads/polling_backoff.hpp"

// This library's own variables, by the linker.
extern "C" {
extern char own_variables_begin[] __asm__("__bss_start") __attribute__((visibility("hidden")));
extern char own_variables_end[] __asm__("_end") __attribute__((visibility("hidden")));
}

namespace strata::preload {
namespace {

using detail::parking;
using detail::unparked;
using detail::posix::deadline;

// A call of futex(2). What an operation does not use is whatever the caller's registers had.
struct futex_call {
  long word, operation, value, fourth, second, third;

  [[nodiscard]] static std::uint32_t* at(long address) noexcept {
    return reinterpret_cast<std::uint32_t*>(address);
  }
  [[nodiscard]] bool is_private() const noexcept { return (operation & FUTEX_PRIVATE_FLAG) != 0; }
  [[nodiscard]] const timespec* time() const noexcept {
    return reinterpret_cast<const timespec*>(fourth);
  }
  [[nodiscard]] std::uint32_t kinds() const noexcept { return static_cast<std::uint32_t>(third); }
  // The word is what the caller expects.
  [[nodiscard]] bool holds() const noexcept {
    return std::atomic_ref(*at(word)).load(std::memory_order_seq_cst) ==
           static_cast<std::uint32_t>(value);
  }
  [[nodiscard]] long by_kernel() const noexcept {
    return call_kernel(SYS_futex, {word, operation, value, fourth, second, third});
  }
};

bool still_holds(void* call) { return static_cast<const futex_call*>(call)->holds(); }

// How many the kernel would wake: one at least, whatever it is asked.
unsigned wanted_of(long count) noexcept {
  return static_cast<unsigned>(std::max(1, static_cast<int>(count)));
}

bool is_valid(const timespec* time) noexcept {
  return time == nullptr ||
         (time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000);
}

// The caller has a stack that can be given up, and the word is one that can be read. Local statics
// of the runtime are waited for in places where it cannot, for moments.
bool can_be_parked(long word) noexcept {
  if (is_native()) return false;
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr || static_cast<const detail::place&>(w).current == nullptr) return false;
  constexpr std::uintptr_t never_mapped = 4096;
  const auto address = static_cast<std::uintptr_t>(word);
  if (address < never_mapped || address % alignof(std::uint32_t) != 0) return false;
  return address < reinterpret_cast<std::uintptr_t>(own_variables_begin) ||
         address >= reinterpret_cast<std::uintptr_t>(own_variables_end);
}

// As the kernel has it: a wait with a deadline ends by any handler.
bool ends_by_handler(const deadline& until) {
  const detail::posix::record* const r = detail::posix::self_if_any();
  return until.until != nullptr || r == nullptr || !r->restarts;
}

// The word was what the caller expects.
long park_at_word(futex_call& call, const deadline& until, std::uint32_t kinds) {
  const int error_before = detail::errno_here();
  // Not EAGAIN where the word has changed since: that is a wake-up, and who goes on on another
  // kernel thread may read another errno (docs/pthread.md, limit 2).
  const auto woken = [&] {
    detail::set_errno_here(error_before);
    return 0L;
  };
  if (until.has_passed()) {
    // Who calls again and again lets those run who would change the word.
    detail::yield_stack();
    return call.holds() ? detail::fail_with(ETIMEDOUT) : woken();
  }
  const bool is_shared = !call.is_private() && is_seen_by_others(futex_call::at(call.word));
  detail::polling_backoff pauses;
  for (;;) {
    parking how = until.bound({.what = "futex",
                               .address = futex_call::at(call.word),
                               .still = &still_holds,
                               .argument = &call,
                               .kinds = kinds});
    const std::int64_t pause_ns = is_shared ? pauses.next_pause_ns() : 0;
    if (is_shared) {
      how.deadline_ns = std::min(how.deadline_ns, os::now_ns() + pause_ns);
      how.look_again = nullptr;
    }
    switch (detail::park(how)) {
      case unparked::timed_out:
        if (until.has_passed()) return detail::fail_with(ETIMEDOUT);
        // Who left the queue for a moment may have missed a wake-up, when the word is by now what
        // it was: so the caller looks, as after one. (Or a clock was set back.)
        if (!is_shared || pause_ns == detail::polling_backoff::longest_ns) return woken();
        break;
      case unparked::signalled:
        if (ends_by_handler(until)) return detail::fail_with(EINTR);
        break;
      case unparked::interrupted:  // and not to end
        break;
      default:
        return woken();
    }
  }
}

long wait(futex_call call, clockid_t clock, bool for_a_time, std::uint32_t kinds) {
  if (kinds == 0 || !can_be_parked(call.word) || !is_valid(call.time())) return call.by_kernel();
  if (!call.holds()) return detail::fail_with(EAGAIN);
  timespec end;
  deadline until{clock, call.time()};
  if (for_a_time && until.until != nullptr) {
    end = detail::posix::from_now(*until.until);
    until.until = &end;
  }
  try {
    return park_at_word(call, until, kinds);
  } catch (const std::exception&) {
    // There is no memory, or no thread, for a deadline. Better late than not at all: our worker
    // stops.
    return call.by_kernel();
  }
}

long wake(futex_call call, std::uint32_t kinds) {
  if (kinds == 0) return call.by_kernel();
  const unsigned wanted = wanted_of(call.value);
  unsigned ours = 0;
  {
    const detail::posix::kept_errno keep;
    ours = detail::unpark(futex_call::at(call.word), wanted, kinds);
  }
  if (ours == 0) return call.by_kernel();
  if (ours == wanted) return ours;
  const detail::posix::kept_errno keep;
  call.value = static_cast<long>(wanted - ours);
  return ours + std::max(call.by_kernel(), 0L);
}

// The kernel first: it knows what is wrong with the arguments, and compares. Ours may have changed
// the word since; who is moved too early goes on without a reason, which all expect.
long requeue(const futex_call& call) {
  const long by_kernel = call.by_kernel();
  if (by_kernel < 0) return by_kernel;
  const detail::posix::kept_errno keep;
  const long wanted = static_cast<int>(call.value);
  const long movable = static_cast<int>(call.fourth);
  const long woken = std::min(by_kernel, wanted);
  const long moved = by_kernel - woken;
  const std::uint32_t* const from = futex_call::at(call.word);
  const std::uint32_t* const to = futex_call::at(call.second);
  unsigned ours = detail::unpark(from, static_cast<unsigned>(wanted - woken));
  if (from != to)
    ours += detail::unpark_requeue(from, to, false, static_cast<unsigned>(movable - moved));
  return by_kernel + ours;
}

// It does not say whether the second word was what those wait for who wait there: ours look for
// themselves.
long wake_with_operation(const futex_call& call) {
  const long by_kernel = call.by_kernel();
  if (by_kernel < 0) return by_kernel;
  const detail::posix::kept_errno keep;
  return by_kernel + detail::unpark(futex_call::at(call.word), wanted_of(call.value)) +
         detail::unpark(futex_call::at(call.second), wanted_of(call.fourth));
}

// Apart: other calls do not pay for its frame.
[[gnu::noinline]] long futex(const futex_call& call) {
  constexpr std::uint32_t any = FUTEX_BITSET_MATCH_ANY;
  switch (static_cast<int>(call.operation) & ~FUTEX_PRIVATE_FLAG) {
    case FUTEX_WAIT:
      return wait(call, CLOCK_MONOTONIC, true, any);
    case FUTEX_WAIT_BITSET:
      return wait(call, CLOCK_MONOTONIC, false, call.kinds());
    case FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME:
      return wait(call, CLOCK_REALTIME, false, call.kinds());
    case FUTEX_WAKE:
      return wake(call, any);
    case FUTEX_WAKE_BITSET:
      return wake(call, call.kinds());
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
      return requeue(call);
    case FUTEX_WAKE_OP:
      return wake_with_operation(call);
    default:
      return call.by_kernel();
  }
}

// The signals of such a call come while it is in this library, where no handler interrupts main().
bool concerns_signals(long number) noexcept {
  switch (number) {
    case SYS_kill:
    case SYS_pidfd_send_signal:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_setitimer:
    case SYS_timer_settime:
    case SYS_timer_delete:
#if defined(SYS_alarm)
    case SYS_alarm:
#endif
      return true;
    default:
      return false;
  }
}

// Apart: as above.
[[gnu::noinline]] long pass_on(long number, const call_arguments& given) {
  const long answer = call_kernel(number, given);
  if (concerns_signals(number)) settle();
  return answer;
}

}  // namespace
}  // namespace strata::preload

extern "C" [[gnu::visibility("default")]] long forward_syscall(long number, ...) __asm__("syscall");

long forward_syscall(long number, ...) {
  std::va_list more;
  va_start(more, number);
  const auto given = strata::preload::read_call_arguments(more);
  va_end(more);
  switch (number) {
    case SYS_futex:
      if (strata::preload::is_allocators(__builtin_return_address(0))) [[unlikely]]
        return strata::preload::call_kernel(number, given);
      return strata::preload::futex({given.a, given.b, given.c, given.d, given.e, given.f});
    case SYS_mmap:
    case SYS_mremap:
    case SYS_shmat:
      return strata::preload::call_mapping(number, given);
    case SYS_close:
      return strata::preload::close_one(static_cast<int>(given.a));
    case SYS_close_range:
      return strata::preload::close_range_of(static_cast<unsigned>(given.a),
                                             static_cast<unsigned>(given.b),
                                             static_cast<int>(given.c));
#if defined(SYS_dup2)
    case SYS_dup2:
      return strata::preload::replace(static_cast<int>(given.a), static_cast<int>(given.b));
#endif
    case SYS_dup3:
      return strata::preload::replace_with(static_cast<int>(given.a), static_cast<int>(given.b),
                                           static_cast<int>(given.c));
    default:
      return strata::preload::pass_on(number, given);
  }
}

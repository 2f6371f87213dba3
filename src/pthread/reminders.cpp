// SPDX-License-Identifier: Apache-2.0
#include "pthread/reminders.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "pthread/holding.hpp"
#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

const char mark_of_reminders = 0;

// Relaxed, both: who reads too early or too late is reminded once more, or once in vain.
constinit std::atomic<int> number_offered{0};  // 0: none
constinit std::atomic<std::uint32_t> in_vain{0};

}  // namespace

constinit std::atomic<void (*)(int, siginfo_t*, void*)> handler_of_reminders{nullptr};

bool is_reminder(const siginfo_t& info) noexcept {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &mark_of_reminders;
}

siginfo_t reminder_of(int number) noexcept {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = const_cast<char*>(&mark_of_reminders);
  return info;
}

bool remind_main(int number) noexcept {
  siginfo_t info = reminder_of(number);
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), number, &info) == 0;
}

void begin_reminding(int number) noexcept {
  number_offered.store(number, std::memory_order_relaxed);
}

void end_reminding() noexcept { number_offered.store(0, std::memory_order_relaxed); }

bool tell_reminded_in_vain(int number) noexcept {
  if (number_offered.load(std::memory_order_relaxed) != number) return false;
  in_vain.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::uint32_t reminded_in_vain() noexcept { return in_vain.load(std::memory_order_relaxed); }

bool take_back_from_main(siginfo_t& info) {
  // Acquire: as in find_thread().
  record* const main = main_record.load(std::memory_order_acquire);
  if (main == nullptr) return false;
  const holding lock(main->more.lock);
  return take_pending(*main, only(info.si_signo), info) != 0;
}

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
#include "pthread/reminders.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "pthread/holding.hpp"
#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

const char mark_of_reminders = 0;

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

bool take_back_from_main(siginfo_t& info) {
  // Acquire: as in find_thread().
  record* const main = main_record.load(std::memory_order_acquire);
  if (main == nullptr) return false;
  const holding lock(main->more.lock);
  return take_pending(*main, only(info.si_signo), info) != 0;
}

}  // namespace strata::detail::posix

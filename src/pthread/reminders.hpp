// SPDX-License-Identifier: Apache-2.0
// What the process's first OS thread is sent for a handler of main()'s that it has to come after:
// the kernel delivers it when that handler has ended, and the signal itself is pending for main().
#pragma once
#include <signal.h>

#include <atomic>
#include <cstdint>

namespace strata::detail::posix {

[[nodiscard]] bool is_reminder(const siginfo_t& info) noexcept;
[[nodiscard]] siginfo_t reminder_of(int number) noexcept;
// The signal is pending for main(). False: the kernel has no room for one more of its kind.
[[nodiscard]] bool remind_main(int number) noexcept;
// What is pending for main() is the process's once more. False: it has been handled.
[[nodiscard]] bool take_back_from_main(siginfo_t& info);

// What is pending for main() is offered to it by such reminders, too, while the taker waits whether
// it comes to it: from begin_ to end_; a reminder that comes where main() cannot be interrupted is
// then told to the taker, and nobody else's. In handlers; false: the taker does not wait for it.
void begin_reminding(int number) noexcept;
void end_reminding() noexcept;
[[nodiscard]] bool tell_reminded_in_vain(int number) noexcept;
// How often that was told.
[[nodiscard]] std::uint32_t reminded_in_vain() noexcept;

// The handler that knows reminders, and is called by the kernel for those of the program; null
// before there is one.
extern constinit std::atomic<void (*)(int, siginfo_t*, void*)> handler_of_reminders;

}  // namespace strata::detail::posix

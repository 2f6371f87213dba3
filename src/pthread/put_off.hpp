// SPDX-License-Identifier: Apache-2.0
// What a handler has called that has interrupted a thread without a worker where that may hold the
// locks for it (sched/outside_section.hpp): done, in order, when the section ends.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <cstddef>

namespace strata::detail::posix {

// Different semaphores, and signals to threads, within one section.
inline constexpr std::size_t put_off_max = 32, put_off_threads_max = 16;

// Waking who waits for what has been posted there. By the address alone. False: there is no room.
[[nodiscard]] bool put_off_waking(const void* semaphore) noexcept;
// pthread_kill(), or pthread_sigqueue() if there is a value. False: there is no room.
[[nodiscard]] bool put_off_sending(pthread_t thread, int number, const sigval* value) noexcept;
// Noting the mask of the calling OS thread, as it will be then.
void put_off_noting_mask() noexcept;

// The latter two, for when it is time: signal_sending.cpp, signal_masks.cpp.
void send_late(pthread_t thread, int number, const sigval* value);
void note_mask_of_os_thread();

}  // namespace strata::detail::posix

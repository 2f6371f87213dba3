// SPDX-License-Identifier: Apache-2.0
// The handlers that the program has asked for: written where it sets them (handlers.cpp), called
// from what the kernel calls in their place (handler_calls.cpp).
#pragma once
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace strata::preload {

// Unsigned, where flags are not.
constexpr int reset_once = static_cast<int>(SA_RESETHAND);

using three_arguments = void (*)(int, siginfo_t*, void*);

// What the program has asked for. The kernel has the rest: the mask, and the other flags.
struct asked {
  // Written before the kernel is told to call us, with release. Partner: call_handler().
  std::atomic<three_arguments> handler{nullptr};
  std::atomic<int> flags{0};
};
extern constinit std::array<asked, NSIG> asked_for;

// What the kernel calls: of those that are left alone, and of all others.
void on_signal_left_alone(int number, siginfo_t* info, void* machine);
void on_signal_of_program(int number, siginfo_t* info, void* machine);

// How many handlers have begun on the calling OS thread, of those that have been asked for.
[[nodiscard]] std::uint32_t handlers_called_here() noexcept;

}  // namespace strata::preload

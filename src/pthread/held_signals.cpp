// SPDX-License-Identifier: Apache-2.0
#include "pthread/held_signals.hpp"

#include "pthread/basic_held.hpp"
#include "pthread/holding.hpp"
#include "pthread/pending_signals.hpp"

namespace strata::detail::posix {
namespace {

constinit basic_held<pending_signals, spin_lock, holding> of_process;

}  // namespace

void hold_signal(const siginfo_t& info) noexcept { of_process.hold(info); }
std::uint64_t held_signals() noexcept { return of_process.look(); }
int take_held(const sigset_t& set, siginfo_t& info) noexcept { return of_process.take(set, info); }
void forget_held_signals() noexcept { of_process.forget(); }

}  // namespace strata::detail::posix

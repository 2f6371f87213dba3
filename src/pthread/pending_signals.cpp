// SPDX-License-Identifier: Apache-2.0
#include "pthread/pending_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "os/pages.hpp"
#include "pthread/holding.hpp"
#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

bool is_real_time(int number) noexcept { return number >= SIGRTMIN; }

constinit kept_signal* free_kept = nullptr;

// Of each number, how often it has been ignored. Relaxed: who ignores one and who looks for it are
// ordered by the program, or either may come first. One that has been pending for 2^32 of them is
// there again.
constinit std::array<std::atomic<std::uint32_t>, NSIG> times_ignored{};
std::uint32_t ignored_by_now(int number) noexcept {
  return times_ignored[static_cast<std::size_t>(number)].load(std::memory_order_relaxed);
}

// From the kernel itself: malloc() may be what a handler has interrupted.
kept_signal* more_kept() noexcept {
  constexpr std::size_t bytes = 16 * 1024;
  auto* const all = reinterpret_cast<kept_signal*>(os::take_pages(bytes));
  if (all == nullptr) return nullptr;
  kept_signal* list = nullptr;
  for (std::size_t i = 0; i < bytes / sizeof(kept_signal); ++i)
    list = ::new (all + i) kept_signal{{}, list};
  return list;
}

kept_signal* take_kept() noexcept {
  const holding lock(kept_signals_lock);
  if (free_kept == nullptr) free_kept = more_kept();
  return free_kept != nullptr ? std::exchange(free_kept, free_kept->next) : nullptr;
}

void give_kept(kept_signal& k) noexcept {
  const holding lock(kept_signals_lock);
  k.next = free_kept;
  free_kept = &k;
}

// Where it hangs, or would; of number 0: the end.
kept_signal** find_kept(pending_signals& p, int number) noexcept {
  kept_signal** at = &p.infos;
  while (*at != nullptr && (*at)->info.si_signo != number) at = &(*at)->next;
  return at;
}

// All that can be said of it is its number.
bool is_plain(const siginfo_t& info) noexcept {
  return info.si_code == SI_TKILL && info.si_pid == getpid() && !is_real_time(info.si_signo);
}

}  // namespace

constinit spin_lock kept_signals_lock;

void note_ignored(int number) noexcept {
  times_ignored[static_cast<std::size_t>(number)].fetch_add(1, std::memory_order_relaxed);
}

bool pending_signals::add(const siginfo_t& info) noexcept {
  const int number = info.si_signo;
  const bool is_there = has(number);
  if (is_there && !is_real_time(number)) return true;
  kept_signal* const k = is_plain(info) ? nullptr : take_kept();
  if (k == nullptr && is_real_time(number)) return false;
  sigaddset(&numbers, number);
  if (!is_there) ignored_before[static_cast<std::size_t>(number)] = ignored_by_now(number);
  if (k == nullptr) return true;  // the number is known
  k->info = info;
  k->next = nullptr;
  *find_kept(*this, 0) = k;
  return true;
}

int pending_signals::take(const sigset_t& set, siginfo_t& info) noexcept {
  for (int number = 1; number < NSIG; ++number) {
    if (!has_signal(set, number) || !has(number)) continue;
    info = about_signal(number, nullptr);
    kept_signal** const at = find_kept(*this, number);
    if (kept_signal* const k = *at) {
      info = k->info;
      *at = k->next;
      give_kept(*k);
    }
    if (*find_kept(*this, number) == nullptr) sigdelset(&numbers, number);
    return number;
  }
  return 0;
}

void pending_signals::forget() noexcept {
  sigemptyset(&numbers);
  while (infos != nullptr) give_kept(*std::exchange(infos, infos->next));
}

bool pending_signals::has(int number) noexcept {
  if (!has_signal(numbers, number)) return false;
  if (ignored_before[static_cast<std::size_t>(number)] == ignored_by_now(number)) return true;
  forget(number);
  return false;
}

void pending_signals::forget(int number) noexcept {
  sigdelset(&numbers, number);
  kept_signal** at = &infos;
  while (*(at = find_kept(*this, number)) != nullptr) give_kept(*std::exchange(*at, (*at)->next));
}

std::uint64_t pending_signals::bits() noexcept {
  std::uint64_t bits = 0;
  for (int number = 1; number < NSIG; ++number) {
    if (has(number)) bits |= signal_bit(number);
  }
  return bits;
}

}  // namespace strata::detail::posix

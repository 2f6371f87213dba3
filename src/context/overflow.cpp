// SPDX-License-Identifier: Apache-2.0
#include "context/overflow.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/spelling.hpp"
#include "context/stack_pool.hpp"
#include "strata/detail/check.hpp"

namespace strata::detail {

constinit std::array<std::atomic<const stack_pool*>, watched_pools_max> watched_pools{};

namespace {

constexpr std::size_t signal_stack_bytes = 64 * 1024;

struct sigaction previous;

// Async-signal-safe.
void say(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

[[noreturn]] void report_overflow(const stack& s, const stack_pool& pool, bool caught) noexcept {
  constexpr std::size_t largest = std::size_t{1} << 30;
  const auto larger = std::min(pool.stack_bytes() * 4, largest) / 1024;
  // The name first and apart: it can be longer than a text holds.
  if (s.title != nullptr) {
    say("strata: stack overflow in thread ");
    say(s.title);
  } else {
    say("strata: stack overflow in task ");
    say(s.kind != nullptr ? plain_name(s.kind->name()) : "(none)");
  }
  check_text text;
  text.add(std::string_view("\nstrata: its stack has "));
  text.add(static_cast<unsigned long long>(pool.stack_bytes()));
  text.add(std::string_view(" bytes"));
  if (!caught)
    text.add(std::string_view(
        " and no guard page (see sysctl vm.max_map_count), so memory below it is damaged"));
  say(text.view());
  check_text advice;
  if (pool.whose_size() == stack_pool::whose::thread) {
    advice.add(
        std::string_view("; make the thread with a larger one (stack_bytes of its attributes, "
                         "pthread_attr_setstacksize()), for example "));
    advice.add(static_cast<unsigned long long>(larger));
    advice.add(std::string_view("K"));
  } else {
    advice.add(std::string_view("; use a larger one, for example --strata-stack-bytes="));
    advice.add(static_cast<unsigned long long>(larger));
    advice.add(std::string_view("K or STRATA_STACK_BYTES="));
    advice.add(static_cast<unsigned long long>(larger));
    advice.add(std::string_view("K"));
  }
  advice.add(std::string_view(", or keep large arrays off the stack\n"));
  say(advice.view());
  _exit(1);
}

namespace {

void on_fault(int number, siginfo_t* info, void* machine) {
  // By kill() and the like: it has no address, and no instruction that could fault again.
  const bool was_sent = info->si_code <= 0;
  for (const auto& slot : watched_pools) {
    const stack_pool* pool = slot.load(std::memory_order_acquire);
    if (pool == nullptr || was_sent) continue;
    if (const stack* s = pool->guarding(info->si_addr)) report_overflow(*s, *pool, true);
  }
  // Not ours.
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(number, info, machine);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else if (!was_sent) {
    // Returning repeats the faulting instruction, this time with the default action: a core dump at
    // the right place.
    signal(number, SIG_DFL);
  } else if (previous.sa_handler == SIG_DFL) {
    signal(number, SIG_DFL);
    raise(number);  // comes when we return
  }
}

}  // namespace

void watch_for_overflow(const stack_pool& pool) {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours;
    std::memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = &on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &previous);
  });
  for (auto& slot : watched_pools) {
    const stack_pool* nobody = nullptr;
    if (slot.compare_exchange_strong(nobody, &pool, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
}

void forget_overflow(const stack_pool& pool) {
  for (auto& slot : watched_pools) {
    const stack_pool* ours = &pool;
    slot.compare_exchange_strong(ours, nullptr, std::memory_order_release,
                                 std::memory_order_relaxed);
  }
}

signal_stack::signal_stack() {
  stack_t now;
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  memory_ = std::make_unique<std::byte[]>(signal_stack_bytes);
  stack_t ours;
  std::memset(&ours, 0, sizeof ours);
  ours.ss_sp = memory_.get();
  ours.ss_size = signal_stack_bytes;
  sigaltstack(&ours, nullptr);
}

signal_stack::~signal_stack() {
  if (memory_ == nullptr) return;
  stack_t off;
  std::memset(&off, 0, sizeof off);
  off.ss_flags = SS_DISABLE;
  sigaltstack(&off, nullptr);
}

}  // namespace strata::detail

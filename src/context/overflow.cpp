// SPDX-License-Identifier: Apache-2.0
#include "context/overflow.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "base/spelling.hpp"
#include "context/interrupted.hpp"
#include "context/stack_pool.hpp"
#include "os/pages.hpp"
#include "strata/detail/check.hpp"

namespace strata::detail {

constinit std::array<std::atomic<const stack_pool*>, watched_pools_max> watched_pools{};

namespace {

constexpr std::size_t signal_stack_bytes = 64 * 1024;

struct sigaction previous;
// What the kernel writes below a stack pointer to call a handler, at most.
std::uintptr_t frame_bytes;
std::uintptr_t guard_page_bytes;
// Of this OS thread; null: none. Read by the handler there.
thread_local constinit watched_os_stack* own_stack __attribute__((tls_model("initial-exec"))) =
    nullptr;

// Async-signal-safe.
void say(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Of s, after `where`. By itself: it can be longer than a text holds.
void say_name(std::string_view where, const stack& s) noexcept {
  say("strata: stack overflow in ");
  say(where);
  if (s.title != nullptr) {
    say("thread ");
    say(s.title);
  } else {
    say("task ");
    say(s.kind != nullptr ? plain_name(s.kind->name()) : "(none)");
  }
}

}  // namespace

[[noreturn]] void report_overflow(const stack& s, const stack_pool& pool, bool caught) noexcept {
  constexpr std::size_t largest = std::size_t{1} << 30;
  const auto larger = std::min(pool.stack_bytes() * 4, largest) / 1024;
  say_name("", s);
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

void watched_os_stack::report_if_guarding(std::uintptr_t address) const noexcept {
  const stack* const s = for_whom_.load(std::memory_order_relaxed);
  if (s == nullptr || address >= bottom_ || bottom_ - address > guard_page_bytes) return;
  say_name("a call of strata::blocking() by ", *s);
  check_text text;
  text.add(std::string_view("\nstrata: such calls have stacks of "));
  text.add(static_cast<unsigned long long>(bytes_));
  text.add(
      std::string_view(" bytes; use larger ones (ulimit -s before the program begins), or keep "
                       "large arrays off the stack\n"));
  say(text.view());
  _exit(1);
}

namespace {

void report_if_guarded(std::uintptr_t address) noexcept {
  for (const auto& slot : watched_pools) {
    const stack_pool* const pool = slot.load(std::memory_order_acquire);
    if (pool == nullptr) continue;
    if (const stack* s = pool->guarding(reinterpret_cast<const void*>(address)))
      report_overflow(*s, *pool, true);
  }
  if (own_stack != nullptr) own_stack->report_if_guarding(address);
}

void on_fault(int number, siginfo_t* info, void* machine) {
  // By kill() and the like: it has no address, and no instruction that could fault again.
  const bool was_sent = info->si_code <= 0;
  if (!was_sent) report_if_guarded(reinterpret_cast<std::uintptr_t>(info->si_addr));
  // Where another signal has a handler without SA_ONSTACK and its frame does not fit onto the
  // stack, the kernel forces this one instead, without an address. (Addresses that can be none come
  // so, too: at the end of a stack one looks like the other.)
  if (info->si_code == SI_KERNEL) {
    const std::uintptr_t end = interrupted_by(machine).stack;
    for (std::uintptr_t below = 0; below < frame_bytes; below += guard_page_bytes)
      report_if_guarded(end - below);
    report_if_guarded(end - frame_bytes);
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
    guard_page_bytes = os::page_bytes();
    // Below what a function may use without moving the stack pointer. An old kernel does not tell:
    // then it is that of AVX-512.
    constexpr std::uintptr_t red_zone = 128, usual_frame = 4096;
    frame_bytes = red_zone + std::max<std::uintptr_t>(getauxval(AT_MINSIGSTKSZ), usual_frame);
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
  // For a message alone: without memory there is none. Not touched before it is needed.
  memory_.reset(new (std::nothrow) std::byte[signal_stack_bytes]);
  if (memory_ == nullptr) return;
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

watched_os_stack::watched_os_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* bottom = nullptr;
    if (pthread_attr_getstack(&attributes, &bottom, &bytes_) == 0)
      bottom_ = reinterpret_cast<std::uintptr_t>(bottom);
    pthread_attr_destroy(&attributes);
  }
  own_stack = this;
}

watched_os_stack::~watched_os_stack() { own_stack = nullptr; }

const stack* watched_os_stack::worked_for_here() noexcept {
  return own_stack != nullptr ? own_stack->for_whom_.load(std::memory_order_relaxed) : nullptr;
}

}  // namespace strata::detail

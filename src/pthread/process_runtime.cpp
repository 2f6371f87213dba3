// SPDX-License-Identifier: Apache-2.0
#include "pthread/process_runtime.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/given_options.hpp"
#include "pthread/default_attributes.hpp"
#include "sched/scheduler.hpp"
#include "strata/error.hpp"
#include "threads/outside.hpp"
#include "threads/seeing.hpp"

namespace strata::detail::posix {
namespace {

// By a STRATA_* variable, or the file that one names. Relaxed: written before there is a runtime,
// and read by its threads.
constinit std::atomic<bool> size_was_asked_for{false};

// At least as large as kernel threads' are by default, as a power of two; small ones have room for
// our header and calls, too. Where `ulimit -s` sets no limit the C library takes 2 MiB for threads:
// main(), which has ours under the command, would find that little.
std::size_t usual_stack_bytes() noexcept {
  constexpr std::size_t without_limit = std::size_t{8} << 20;
  // Of these as many as 256 fit into what a pool has of addresses; then see take_smaller_stack().
  constexpr std::size_t largest = std::size_t{256} << 20;
  constexpr std::size_t for_us = std::size_t{16} << 10;
  rlimit limit{};
  if (!defaults_have_changed() &&
      (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY))
    return without_limit;
  const std::size_t bytes = std::min(default_stack_bytes(), largest);
  return std::bit_ceil(bytes < std::size_t{1} << 20 ? bytes + for_us : bytes);
}

options settings() {
  std::array<char, 7> name{"strata"};
  std::array<char*, 2> argv{name.data(), nullptr};
  int argc = 1;
  given_options given = parse_given(argc, argv.data());
  const bool asks_for_a_size = given.has("stack-bytes");
  size_was_asked_for.store(asks_for_a_size, std::memory_order_relaxed);
  if (!asks_for_a_size) given.settings.stack_bytes = usual_stack_bytes();
  return given.settings;
}

// What there is of it, for as long as the process.
struct started {
  explicit started(const options& o) : workers(o), seen(o) {}
  scheduler workers;
  const seeing seen;
};

// Acquire and release everywhere: who finds one finds it whole.
constinit std::atomic<scheduler*> of_pthreads{nullptr};
constinit std::atomic<scheduler*> of_threads{nullptr};
constinit std::mutex starting;
sigset_t mask_before{};

// Once for each.
template <std::atomic<scheduler*>& Which>
void print_statistics() {
  const scheduler* const s = Which.load(std::memory_order_acquire);
  if (s != nullptr) std::fputs(s->read_statistics().to_text().c_str(), stderr);
}

// Throws what says that there is no memory, or no thread for a worker.
scheduler* start(void (*at_end)()) {
  try {
    const options o = settings();
    o.validate();
    auto* const one = new started(o);
    scheduler& s = one->workers;
    if (o.print_binding) std::fprintf(stderr, "strata: %s\n", s.binding().c_str());
    if (o.stats) std::atexit(at_end);
    return &s;
  } catch (const user_error& problem) {
    std::fprintf(stderr, "strata: %s\n", problem.what());
    std::_Exit(2);
  }
}

// Signals go to the program's own threads, which know of them; faults stay where they happen.
scheduler* start_without_signals() {
  struct blocked {
    blocked() {
      sigset_t all;
      sigfillset(&all);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&all, fault);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    blocked(const blocked&) = delete;
    blocked& operator=(const blocked&) = delete;
    sigset_t before;
  } const for_now;
  mask_before = for_now.before;
  return start(&print_statistics<of_pthreads>);
}

scheduler* start_with_signals() { return start(&print_statistics<of_threads>); }

// Never destroyed: threads may run until the process ends.
scheduler& one_of(std::atomic<scheduler*>& which, scheduler* (*start_it)()) {
  scheduler* s = which.load(std::memory_order_acquire);
  if (s == nullptr) {
    const std::lock_guard lock(starting);
    s = which.load(std::memory_order_relaxed);
    if (s == nullptr) {
      s = start_it();
      which.store(s, std::memory_order_release);
    }
  }
  return *s;
}

}  // namespace

scheduler& process_runtime() { return one_of(of_pthreads, &start_without_signals); }

bool has_process_runtime() noexcept {
  return of_pthreads.load(std::memory_order_acquire) != nullptr ||
         of_threads.load(std::memory_order_acquire) != nullptr;
}
void hold_runtime_start() { starting.lock(); }
void release_runtime_start() noexcept { starting.unlock(); }
void forget_process_runtimes() noexcept {
  // Kept for those who look for leaks.
  static std::vector<scheduler*>& forgotten = *new std::vector<scheduler*>;
  for (auto* const which : {&of_pthreads, &of_threads})
    forgotten.push_back(which->exchange(nullptr, std::memory_order_acq_rel));
}
bool blocks_signals(const scheduler* s) noexcept {
  return s != nullptr && s == of_pthreads.load(std::memory_order_acquire);
}
bool is_process_runtime(const scheduler* s) noexcept {
  return blocks_signals(s) || (s != nullptr && s == of_threads.load(std::memory_order_acquire));
}
const sigset_t& mask_at_start() noexcept { return mask_before; }

scheduler& runtime_for_new_thread() {
  scheduler* const here = this_worker().owner;
  return here != nullptr ? *here : process_runtime();
}

}  // namespace strata::detail::posix

namespace strata::detail {

scheduler& runtime_of_process() {
  return posix::one_of(posix::of_threads, &posix::start_with_signals);
}

bool is_size_of_kernel_threads(const scheduler& s) noexcept {
  return posix::is_process_runtime(&s) &&
         !posix::size_was_asked_for.load(std::memory_order_relaxed);
}

}  // namespace strata::detail

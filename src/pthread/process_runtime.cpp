// SPDX-License-Identifier: Apache-2.0
#include "pthread/process_runtime.hpp"

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "sched/scheduler.hpp"
#include "strata/error.hpp"
#include "threads/outside.hpp"
#include "threads/seeing.hpp"

namespace strata::detail::posix {
namespace {

constexpr std::size_t usual_stack_bytes = std::size_t{8} << 20;

options settings() {
  std::array<char, 7> name{"strata"};
  std::array<char*, 2> argv{name.data(), nullptr};
  int argc = 1;
  options o = options::parse(argc, argv.data());
  if (o.stack_bytes == options().stack_bytes && std::getenv("STRATA_STACK_BYTES") == nullptr)
    o.stack_bytes = usual_stack_bytes;
  return o;
}

// What there is of it, for as long as the process.
struct started {
  explicit started(const options& o) : workers(o), seen(o) {}
  scheduler workers;
  const seeing seen;
};

void print_statistics();

constinit std::atomic<scheduler*> current{nullptr};
constinit std::mutex starting;
sigset_t mask_before{};

scheduler* start() {
  // Signals go to the program's own threads, which know of them; faults stay where they happen.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  mask_before = before;
  try {
    const options o = settings();
    o.validate();
    auto* const one = new started(o);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    scheduler& s = one->workers;
    if (o.print_binding) std::fprintf(stderr, "strata: %s\n", s.binding().c_str());
    if (o.stats) std::atexit(&print_statistics);
    return &s;
  } catch (const user_error& problem) {
    std::fprintf(stderr, "strata: %s\n", problem.what());
    std::_Exit(2);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "strata: cannot start the workers: %s\n", problem.what());
    std::_Exit(1);
  }
}

void print_statistics() {
  std::fputs(process_runtime().read_statistics().to_text().c_str(), stderr);
}

}  // namespace

scheduler& process_runtime() {
  // Never destroyed: threads may run until the process ends.
  scheduler* s = current.load(std::memory_order_acquire);
  if (s == nullptr) {
    const std::lock_guard lock(starting);
    s = current.load(std::memory_order_relaxed);
    if (s == nullptr) {
      s = start();
      current.store(s, std::memory_order_release);
    }
  }
  return *s;
}

scheduler* process_runtime_if_any() noexcept { return current.load(std::memory_order_acquire); }
void hold_runtime_start() { starting.lock(); }
void release_runtime_start() noexcept { starting.unlock(); }
void forget_process_runtime() noexcept {
  // Kept for those who look for leaks.
  static std::vector<scheduler*>& forgotten = *new std::vector<scheduler*>;
  forgotten.push_back(current.exchange(nullptr, std::memory_order_acq_rel));
}
const sigset_t& mask_at_start() noexcept { return mask_before; }

scheduler& runtime_for_new_thread() {
  scheduler* const here = this_worker().owner;
  return here != nullptr ? *here : process_runtime();
}

}  // namespace strata::detail::posix

namespace strata::detail {

scheduler& runtime_of_process() { return posix::process_runtime(); }

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "pthread/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "os/own_thread.hpp"
#include "pthread/default_attributes.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/record.hpp"
#include "pthread/signal_taker.hpp"
#include "sched/registry.hpp"
#include "strata/detail/worker.hpp"
#include "threads/after_fork.hpp"

namespace strata::detail::posix {
namespace {

// Within strata::runtime::run() the caller's frames need their worker: there a child can only exec,
// or go on without waiting.
bool is_in_other_runtime() noexcept {
  const scheduler* const here = this_worker().owner;
  return here != nullptr && !is_process_runtime(here);
}

bool concerns_us() noexcept {
  const bool has_begun = has_process_runtime() || are_there_records();
  return has_begun && !is_in_other_runtime();
}

// An `uninterrupted`, from before the fork until behind it, where nothing of the program's runs.
alignas(
    uninterrupted) thread_local constinit std::array<std::byte, sizeof(uninterrupted)> section{};

// Kept by those who know that they are one of their own; 0 before all constructors. Relaxed: set
// before there are threads.
constinit std::atomic<pid_t> own_process{0};

// By this OS thread, which goes on with no other stack meanwhile. Relaxed: by itself.
thread_local constinit std::atomic<bool> holds_all{false};

void before_fork() {
  holds_all.store(true, std::memory_order_relaxed);
  if (concerns_us()) (void)self();  // it cannot be made any more when its place is gone
  ::new (section.data()) uninterrupted;
  hold_runtime_start();
  hold_records();
  hold_keys();
  hold_default_attributes();
  hold_lock_graph();
}

void in_parent() {
  release_lock_graph();
  release_default_attributes();
  release_keys();
  release_records();
  release_runtime_start();
  std::destroy_at(std::launder(reinterpret_cast<uninterrupted*>(section.data())));
  holds_all.store(false, std::memory_order_relaxed);
}

void in_child() {
  own_process.store(getpid(), std::memory_order_relaxed);
  os::forget_own_threads();
  in_parent();
  free_record_locks();
  if (!concerns_us()) return;
  record& mine = self();
  forget_process_runtimes();
  forget_runtimes();
  forget_parked();
  forget_descriptor_waits();
  forget_blocking_threads();
  forget_dump_signal();
  forget_other_threads(mine);
  forget_running_once();
  forget_signal_taker();
  if (this_worker().owner != nullptr) become_outside(mine);
}

// Before the program can register handlers of its own. So ours come last before a fork and first
// behind it: the program's may wait for what other threads hold, which may be in here.
[[gnu::constructor(101)]] void watch_forks() {
  own_process.store(getpid(), std::memory_order_relaxed);
  pthread_atfork(&before_fork, &in_parent, &in_child);
}

}  // namespace

bool is_in_child_of_vfork() noexcept {
  const pid_t own = own_process.load(std::memory_order_relaxed);
  return own != 0 && own != getpid();
}

[[gnu::noinline]] bool is_in_fork() noexcept { return holds_all.load(std::memory_order_relaxed); }

void end_process_with(record* r) {
  // Handlers do not interrupt it any more.
  this_worker().preemptible.store(false, std::memory_order_relaxed);
  if (r != nullptr) {
    end_keys(*r);
    // Where it is the process's, and nothing that is for r's next thread comes to our wait.
    leave_outside_record(*r);
    end_record(*r);
  }
  wait_until_alone();
  std::exit(0);
}

}  // namespace strata::detail::posix

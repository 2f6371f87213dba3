// SPDX-License-Identifier: Apache-2.0
#include "pthread/fork.hpp"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "pthread/process_runtime.hpp"
#include "pthread/record.hpp"
#include "sched/registry.hpp"
#include "strata/detail/worker.hpp"
#include "threads/after_fork.hpp"

namespace strata::detail::posix {
namespace {

// Within strata::runtime::run() the caller's frames need their worker: there a child can only exec,
// or go on without waiting.
bool is_in_other_runtime() noexcept {
  const scheduler* const here = this_worker().owner;
  return here != nullptr && here != process_runtime_if_any();
}

void before_fork() {
  (void)self();  // it cannot be made any more when its place is gone
  hold_runtime_start();
  hold_records();
  hold_keys();
}

void in_parent() {
  release_keys();
  release_records();
  release_runtime_start();
}

void in_child() {
  in_parent();
  if (is_in_other_runtime()) return;
  record& mine = self();
  forget_process_runtime();
  forget_runtimes();
  forget_parked();
  forget_blocking_threads();
  forget_other_threads();
  forget_signal_taker();
  if (this_worker().owner != nullptr) become_outside(mine);
}

}  // namespace

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(&before_fork, &in_parent, &in_child); });
}

void end_process_with(record& r) {
  end_keys(r);
  end_record(r);
  wait_until_alone();
  std::exit(0);
}

}  // namespace strata::detail::posix

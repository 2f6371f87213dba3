// SPDX-License-Identifier: Apache-2.0
// An exception has left a fiber. Nobody joins a fiber, so its whole runtime fails: tokens and
// fibers that have not begun are given up, those that run end, and only when nothing of it moves
// any more do the waiting tasks get the exception: what they unwind may be what a fiber was about
// to write to. When they have ended too, the runtime is as good as new.
#include "sched/failure.hpp"

#include <cstdio>
#include <thread>
#include <utility>

#include "sched/scheduler.hpp"

namespace strata::detail {

void scheduler::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(failure_mutex_);
  if (failure_) return;
#if defined(STRATA_TSAN)
  failures_.push_back(error);
#endif
  failure_ = std::move(error);
  failure_delivered_ = false;
  const visit neighbours(*this);
  if (neighbours) settled_.store(0, std::memory_order_seq_cst);
  failed.store(true, std::memory_order_seq_cst);
  if (neighbours) neighbours->computation_failed(failure_);
}

std::exception_ptr scheduler::take_failure() {
  const std::lock_guard lock(failure_mutex_);
  failure_delivered_ = true;
  return failure_;
}

bool scheduler::failure_is_untold() {
  const std::lock_guard lock(failure_mutex_);
  return failure_ != nullptr && !failure_delivered_;
}

void scheduler::await_failure(failure_listener& l) {
  const std::lock_guard lock(failure_mutex_);
  listeners_.push_back(&l);
}

void scheduler::forget_failure(failure_listener& l) {
  const std::lock_guard lock(failure_mutex_);
  std::erase(listeners_, &l);
}

bool scheduler::somebody_waits() {
  const std::lock_guard lock(failure_mutex_);
  return !listeners_.empty();
}

bool scheduler::failure_is_awaited() {
  if (!failed.load(std::memory_order_seq_cst) || settled_.load(std::memory_order_seq_cst) == 0)
    return false;
  const std::lock_guard lock(failure_mutex_);
  return failure_ != nullptr && !listeners_.empty();
}

void scheduler::tell_of_failure(worker& w) {
  const std::lock_guard lock(failure_mutex_);
  if (failure_ == nullptr) return;
  for (failure_listener* l : listeners_) l->computation_failed(w, failure_);
  failure_delivered_ |= !listeners_.empty();
  listeners_.clear();
}

void scheduler::clear_failure() {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(failure_mutex_);
    failure = failure_;
  }
  while (failure != nullptr) {
    while (settled_.load(std::memory_order_seq_cst) == 0) os::blocking_futex_wait(settled_, 0);
    // Who is in a call is no part of what has failed, and may be there for ever.
    wait_idle(calls::do_not_count);
    // Nothing can be injected now, and a thread that takes a sleeper's place looks at `failed`
    // afterwards (see lease()): if all sleep, the next to begin anything finds it cleared.
    const injected_work::closure nothing_comes_in(injected_);
    const std::lock_guard lock(failure_mutex_);
    if (failure_ != failure) return;  // another thread was faster
    if (!nothing_comes_in || !listeners_.empty() || !nothing_moves()) {
      std::this_thread::yield();
      continue;
    }
    if (!failure_delivered_) report_failure();
    failure_ = nullptr;
    failed.store(false, std::memory_order_seq_cst);
    return;
  }
}

void scheduler::settle(bool forget) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (forget && listeners_.empty()) {
      failure_ = nullptr;
      failed.store(false, std::memory_order_seq_cst);
    }
    settled_.store(1, std::memory_order_seq_cst);
  }
  os::futex_wake(settled_, INT32_MAX);
  // Somebody has to fall asleep again to see that there is something to tell.
  idle_.wake_one();
}

void scheduler::report_failure() const noexcept {
  try {
    std::rethrow_exception(failure_);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "strata: an exception left a fiber and nobody waited: %s\n", e.what());
  } catch (...) {
    std::fputs("strata: an exception left a fiber and nobody waited\n", stderr);
  }
}

}  // namespace strata::detail

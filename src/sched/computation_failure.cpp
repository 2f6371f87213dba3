// SPDX-License-Identifier: Apache-2.0
#include "sched/computation_failure.hpp"

#include <cstdint>
#include <cstdio>

namespace strata::detail {

void computation_failure::keep(std::exception_ptr error, bool others) noexcept {
#if defined(STRATA_TSAN)
  all_.push_back(error);
#endif
  error_ = std::move(error);
  told_ = false;
  forget_when_told_ = false;
  if (others) settled_.store(0, std::memory_order_seq_cst);
  is_there.store(true, std::memory_order_seq_cst);
}

void computation_failure::forget() noexcept {
  error_ = nullptr;
  forget_when_told_ = false;
  is_there.store(false, std::memory_order_seq_cst);
}

void computation_failure::forget_if_told() noexcept {
  if (forget_when_told_ && listeners_.empty()) forget();
}

void computation_failure::settle(bool forget_it) {
  {
    const std::lock_guard lock(mutex_);
    if (forget_it && error_ != nullptr) {
      forget_when_told_ = true;
      forget_if_told();
    }
    settled_.store(1, std::memory_order_seq_cst);
  }
  os::futex_wake(settled_, INT32_MAX);
}

void computation_failure::wait_until_settled() noexcept {
  while (settled_.load(std::memory_order_seq_cst) == 0) os::blocking_futex_wait(settled_, 0);
}

std::exception_ptr computation_failure::get() {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::exception_ptr computation_failure::take() {
  const std::lock_guard lock(mutex_);
  told_ = true;
  return error_;
}

bool computation_failure::is_untold() {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr && !told_;
}

void computation_failure::add(failure_listener& l) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(&l);
}

void computation_failure::remove(failure_listener& l) {
  const std::lock_guard lock(mutex_);
  std::erase(listeners_, &l);
  forget_if_told();
}

bool computation_failure::has_listeners() {
  const std::lock_guard lock(mutex_);
  return !listeners_.empty();
}

bool computation_failure::is_awaited() const {
  if (!is_there.load(std::memory_order_seq_cst) || settled_.load(std::memory_order_seq_cst) == 0)
    return false;
  const std::lock_guard lock(mutex_);
  return error_ != nullptr && !listeners_.empty();
}

void computation_failure::tell(worker& w) {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) return;
  for (failure_listener* l : listeners_) l->computation_failed(w, error_);
  told_ |= !listeners_.empty();
  listeners_.clear();
  forget_if_told();
}

std::string computation_failure::describe_listeners() {
  constexpr std::size_t listeners_max = 20;
  std::string text;
  const std::lock_guard lock(mutex_);
  std::size_t shown = 0;
  for (const failure_listener* l : listeners_) {
    if (++shown > listeners_max) break;
    text += "  a task waits for " + l->describe() + "\n";
  }
  if (listeners_.size() > listeners_max)
    text += "  and " + std::to_string(listeners_.size() - listeners_max) + " more tasks wait\n";
  if (listeners_.empty()) text += "  no task waits for fibers\n";
  return text;
}

void computation_failure::report() const noexcept {
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "strata: an exception left a fiber and nobody waited: %s\n", e.what());
  } catch (...) {
    std::fputs("strata: an exception left a fiber and nobody waited\n", stderr);
  }
}

}  // namespace strata::detail

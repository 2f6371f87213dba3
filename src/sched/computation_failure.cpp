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
  if (forget_when_told_ && first_ == nullptr) forget();
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

void computation_failure::stop_listening(failure_listener& l) noexcept {
  (l.previous_ != nullptr ? l.previous_->next_ : first_) = l.next_;
  (l.next_ != nullptr ? l.next_->previous_ : last_) = l.previous_;
  l.listens_ = false;
  --listening_;
}

void computation_failure::add(failure_listener& l) noexcept {
  const std::lock_guard lock(mutex_);
  l.next_ = nullptr;
  l.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &l;
  last_ = &l;
  l.listens_ = true;
  ++listening_;
}

void computation_failure::remove(failure_listener& l) noexcept {
  const std::lock_guard lock(mutex_);
  if (l.listens_) stop_listening(l);
  forget_if_told();
}

bool computation_failure::has_listeners() {
  const std::lock_guard lock(mutex_);
  return first_ != nullptr;
}

bool computation_failure::is_awaited() const {
  if (!is_there.load(std::memory_order_seq_cst) || settled_.load(std::memory_order_seq_cst) == 0)
    return false;
  const std::lock_guard lock(mutex_);
  return error_ != nullptr && first_ != nullptr;
}

void computation_failure::tell(worker& w) {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) return;
  told_ |= first_ != nullptr;
  while (failure_listener* const l = first_) {
    stop_listening(*l);
    l->computation_failed(w, error_);
  }
  forget_if_told();
}

std::string computation_failure::describe_listeners() {
  constexpr std::size_t listeners_max = 20;
  std::string text;
  const std::lock_guard lock(mutex_);
  std::size_t shown = 0;
  for (const failure_listener* l = first_; l != nullptr && shown < listeners_max; l = l->next_) {
    ++shown;
    text += "  a task waits for " + l->describe() + "\n";
  }
  if (listening_ > shown)
    text += "  and " + std::to_string(listening_ - shown) + " more tasks wait\n";
  if (listening_ == 0) text += "  no task waits for fibers\n";
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

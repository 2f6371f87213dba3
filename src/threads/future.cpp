// SPDX-License-Identifier: Apache-2.0
#include "strata/future.hpp"

namespace strata::detail {

namespace {

std::exception_ptr make_broken() {
  return std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
}
// Made before there is no memory: who breaks a promise can tell nobody but who waits. Never
// destroyed: promises are broken until the process ends.
const std::exception_ptr* const broken = new std::exception_ptr(make_broken());

}  // namespace

void refuse_future(std::future_errc why) { throw std::future_error(why); }

void future_state::claim() {
  // Acquire: after somebody who has given up. Partner: unclaim().
  if (claimed_.exchange(true, std::memory_order_acq_rel))
    refuse_future(std::future_errc::promise_already_satisfied);
}

void future_state::hand_out() {
  if (handed_out_.exchange(true, std::memory_order_relaxed))
    refuse_future(std::future_errc::future_already_retrieved);
}

void future_state::publish() noexcept {
  // Release: the result, for whoever sees it ready. Partner: is_ready(). From then on by the
  // address only: a waiter may have ended us.
  if (word_.exchange(ready, std::memory_order_acq_rel) == awaited) unpark(&word_, UINT32_MAX);
}

void future_state::fail(std::exception_ptr e) noexcept {
  error = std::move(e);
  publish();
}

void future_state::break_promise() noexcept {
  fail(broken != nullptr ? *broken : make_broken());  // null before this file's statics are made
}

bool future_state::must_wait(void* self) {
  auto& word = static_cast<future_state*>(self)->word_;
  std::uint32_t seen = pending;
  // Marked with the queue locked: whoever publishes sees the mark, and then finds us.
  word.compare_exchange_strong(seen, awaited, std::memory_order_relaxed);
  return seen != ready;
}

void future_state::wait() {
  begin();
  while (!is_ready()) {
    park({.what = "future", .address = &word_, .still = &must_wait, .argument = this});
  }
  (void)finish(parking::never);
}

std::future_status future_state::wait_until(std::int64_t deadline_ns) {
  if (is_deferred()) return std::future_status::deferred;
  while (!is_ready()) {
    const unparked why = park({.what = "future",
                               .address = &word_,
                               .still = &must_wait,
                               .argument = this,
                               .deadline_ns = deadline_ns});
    if (why == unparked::timed_out && !is_ready()) return std::future_status::timeout;
  }
  return finish(deadline_ns) ? std::future_status::ready : std::future_status::timeout;
}

}  // namespace strata::detail

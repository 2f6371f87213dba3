// SPDX-License-Identifier: Apache-2.0
#include "strata/condition_variable.hpp"

#include <memory>

#include "strata/detail/join.hpp"
#include "strata/detail/specifics.hpp"

namespace strata::detail {

unparked condition_queue::wait(void (*unlock)(void*), void* lock, std::int64_t deadline_ns) {
  // Marked with the lock held, so whoever changes under it what we wait for sees the mark, and
  // finds us in the queue. It stays marked, and who reads a mark need not leave another, which
  // would cost as much as a lock. Partner: notify().
  if (!used_.load(std::memory_order_seq_cst)) used_.store(true, std::memory_order_seq_cst);
  return park({.what = "condition variable",
               .address = this,
               .then = unlock,
               .then_argument = lock,
               .deadline_ns = deadline_ns});
}

void condition_queue::notify(unsigned count) noexcept {
  if (!used_.load(std::memory_order_seq_cst)) return;
  // Nothing of ours may be touched once somebody is woken, who may end us.
  unpark(this, count);
}

namespace {
struct counted_wait {
  const std::atomic<std::uint64_t>* notifications;
  std::uint64_t begun;
  stop_question* stop;
};
}  // namespace

std::uint64_t counted_condition_queue::begin_wait() {
  // Before the caller unlocks anything.
  if (this_worker().owner != nullptr) require_stack();
  // As in condition_queue::wait().
  if (!used_.load(std::memory_order_seq_cst)) used_.store(true, std::memory_order_seq_cst);
  return notifications_.load(std::memory_order_relaxed);
}

// With the queue locked, which whoever has notified us has to do afterwards.
bool counted_condition_queue::is_awaited(void* request) {
  const auto& r = *static_cast<counted_wait*>(request);
  return r.notifications->load(std::memory_order_relaxed) == r.begun &&
         (r.stop == nullptr || !r.stop->requested(r.stop->token));
}

void counted_condition_queue::forget_callback(void* request) noexcept {
  const auto& r = *static_cast<counted_wait*>(request);
  r.stop->forget(r.stop->callback);
}

void counted_condition_queue::wait_since(std::uint64_t begun, std::int64_t deadline_ns,
                                         stop_question* stop) {
  counted_wait request{&notifications_, begun, stop};
  park({.what = "condition variable",
        .address = this,
        .still = &is_awaited,
        .forgotten = stop != nullptr ? &forget_callback : nullptr,
        .argument = &request,
        .deadline_ns = deadline_ns,
        .place = stop});
}

void counted_condition_queue::notify(unsigned count) noexcept {
  if (!used_.load(std::memory_order_seq_cst)) return;
  // Whoever looks at it with the queue locked either sees this, or is found in the queue. From here
  // on we may be gone.
  notifications_.fetch_add(1, std::memory_order_relaxed);
  unpark(this, count);
}

}  // namespace strata::detail

namespace strata {

namespace {
struct parting_notice {
  condition_variable* changed;
  mutex* held;
};
}  // namespace

void notify_all_at_thread_exit(condition_variable& changed, std::unique_lock<mutex> lock) {
  auto notice = std::make_unique<parting_notice>(parting_notice{&changed, lock.mutex()});
  detail::at_thread_exit(
      [](void* argument) noexcept {
        const std::unique_ptr<parting_notice> n(static_cast<parting_notice*>(argument));
        n->held->unlock();
        n->changed->notify_all();
      },
      notice.get());
  (void)notice.release();
  (void)lock.release();
}

}  // namespace strata

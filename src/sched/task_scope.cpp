// SPDX-License-Identifier: Apache-2.0
#include "strata/task_scope.hpp"

#include <cstdio>

#include "sched/scheduler.hpp"
#include "strata/detail/frame.hpp"

namespace strata {

#if defined(STRATA_DEBUG_CHECKS)
detail::scope_maker::scope_maker() noexcept : who_(stack_of_task()) {}

void detail::scope_maker::check() const {
  if (who_ != stack_of_task() || is_lent_)
    throw misuse_error(
        "a task_scope is used by another task than the one that made it, which may use it at the "
        "same time: let each task make its own");
}
#endif

void task_scope::add(child& c) {
  detail::worker& w = detail::this_worker();
  w.events.spawns.add();
  w.push(&c);
  ++spawned_;  // now: as below
}

void task_scope::add(call_link& c) {
  detail::worker& w = detail::this_worker();
  w.events.spawns.add();
  w.push(c.offered);
  c.next = calls_;  // now: where there was no memory to push it, nobody waits for it
  calls_ = &c;
}

// A child that was stolen, or that its worker ran after this task had suspended.
void task_scope::run_elsewhere(detail::task& t) {
  auto& c = static_cast<child&>(t);
  task_scope& scope = *c.scope;
  scope.run_child(c);
  scope.finished_elsewhere(detail::this_worker());
}

template <class Run>
void task_scope::run_measured(Run&& run) noexcept {
  const bool skip = stop_requested();
  detail::worker& w = detail::this_worker();
  if (!w.profiling) return run(w, skip);
  detail::strand measure;
  detail::strand_begin(measure);
  run(w, skip);
  detail::strand_end(measure);
  children_work_.fetch_add(measure.work, std::memory_order_relaxed);
  detail::path_joins(children_span_, measure.span);
}

void task_scope::run_child(child& c) noexcept {
  run_measured([&](detail::worker& w, bool skip) { c.finish(c, w, skip); });
}

void task_scope::run_call(call_link& c) noexcept {
  run_measured([&](detail::worker&, bool skip) { c.make(c, skip); });
}

void task_scope::finished_elsewhere(detail::worker& w) noexcept {
  // Read first: once the balance is even, the scope may be gone.
  // Acquire-release: the waiter sees what all children did. Partner: commit() and
  // finish_children().
  if (balance_.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::resume(w, *waiter_);
}

bool task_scope::commit(detail::stack& s, void* self) {
  auto& scope = *static_cast<task_scope*>(self);
  scope.waiter_ = &s;
  const auto elsewhere = static_cast<std::int64_t>(scope.spawned_ - scope.ran_here_);
  return scope.balance_.fetch_add(elsewhere, std::memory_order_acq_rel) != -elsewhere;
}

void task_scope::finish_children() noexcept {
  // Own children first, newest first, as direct calls; with the stack nearly used up the worker
  // runs them, on other stacks.
  while ((ran_here_ != spawned_ || calls_ != nullptr) && !detail::stack_is_low()) {
    detail::worker& w = detail::this_worker();
    detail::task* t = w.deque.pop();
    if (t == nullptr && !w.overflow.empty()) t = w.pop_overflow();
    if (t == nullptr) break;
    w.share_if_asked();
    if (calls_ != nullptr && t == calls_->offered) {
      call_link& c = *std::exchange(calls_, calls_->next);
      maker_.lend(true);
      run_call(c);
      maker_.lend(false);
      c.end(c, true);
      continue;
    }
    if (detail::can_travel(t) || t->type->body != &run_elsewhere ||
        static_cast<child*>(t)->scope != this) {
      w.push(t);  // somebody else's: ours below it, if any, run elsewhere
      break;
    }
    ++ran_here_;
    maker_.lend(true);
    run_child(*static_cast<child*>(t));
    maker_.lend(false);
  }
  const auto elsewhere = static_cast<std::int64_t>(spawned_ - ran_here_);
  if (elsewhere != 0 && balance_.load(std::memory_order_acquire) != -elsewhere) {
    detail::suspend(&commit, this);
  }
  while (calls_ != nullptr) {
    call_link& c = *std::exchange(calls_, calls_->next);
    c.end(c, false);
  }
  balance_.store(0, std::memory_order_relaxed);
  spawned_ = ran_here_ = 0;
  if (detail::this_worker().profiling) {
    detail::strand children;
    children.work = children_work_.exchange(0, std::memory_order_relaxed);
    children.span = children_span_.exchange(0, std::memory_order_relaxed);
    detail::strands_join(children, detail::strand{});
  }
}

void task_scope::hand_over_results() noexcept {
  while (results_ != nullptr) {
    kept_result& r = *std::exchange(results_, results_->next);
    r.has_ended = true;
    if (!r.has_handle) r.destroy(&r);
  }
}

void task_scope::keep(std::exception_ptr e) noexcept {
  if (!threw_.exchange(true, std::memory_order_acq_rel)) exception_ = std::move(e);
}

void task_scope::sync() {
  maker_.check();
  if (spawned_ != 0 || calls_ != nullptr) finish_children();
  hand_over_results();
  if (threw_.load(std::memory_order_acquire)) {
    threw_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }
}

task_scope::~task_scope() {
  if (spawned_ != 0 || calls_ != nullptr) finish_children();
  hand_over_results();
  if (exception_ != nullptr && std::uncaught_exceptions() <= unwinding_) {
    std::fputs("strata: a task_scope ended with an exception that no sync() had rethrown\n",
               stderr);
    std::rethrow_exception(exception_);  // ends the program, which then says what it is
  }
}

}  // namespace strata

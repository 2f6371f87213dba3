// SPDX-License-Identifier: Apache-2.0
// Threads of the program on a simulated node. Each has a stack of its own, as in a runtime, and is
// continued by its node's worker when the simulated clock comes to it.
#include <exception>
#include <utility>

#include "context/stack.hpp"
#include "sched/scheduler.hpp"
#include "sim/simulated_job.hpp"
#include "strata/detail/check.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "strata/runtime.hpp"

namespace strata::sim {

simulated_node::as_its_worker::as_its_worker(simulated_node& n) noexcept
    : node_(n),
      outer_(std::exchange(detail::strata_current_worker, n.worker_.get())),
      // All simulated workers are of one scheduler.
      outer_messenger_(std::exchange(n.job_.frames_->messenger, &n.messenger)) {}

simulated_node::as_its_worker::~as_its_worker() {
  node_.take_what_was_pushed();
  detail::strata_current_worker = outer_;
  node_.job_.frames_->messenger = outer_messenger_;
  if (!node_.ready_.empty() || !node_.tokens_.empty()) node_.wake();
}

// Whoever wakes a stack that is bound to this node's worker leaves it to that one, and not to a
// worker of the scheduler that all nodes share.
void simulated_node::run(detail::task& t) {
  detail::stack* s = nullptr;
  if (t.type->run == &detail::run_on_stack) {
    s = worker_->prepare_stack(t);
    STRATA_CHECK(s != nullptr);
    s->pinned_to = worker_.get();
    stacks_.insert(s);
    worker_->continue_stack(*s);
  } else {
    if (stacks_.contains(&t)) s = static_cast<detail::stack*>(&t);
    t.type->run(t, *worker_);
  }
  // Whoever leaves one for another comes back here first: a simulated worker never dispatches.
  if (s != nullptr && s->kind == nullptr) stacks_.erase(s);
}

void simulated_node::begin_thread(std::function<void()> body) {
  ++threads_;
  auto whole = [this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      if (job_.failure_ == nullptr) job_.failure_ = std::current_exception();
    }
    --threads_;
  };
  run_soon(new detail::detached_call<decltype(whole)>(std::move(whole)));
}

// Whoever it continues is bound to its node's worker, who knows nothing of that yet.
void job::alarm_at(std::int64_t time_ns) {
  if (time_ns >= next_alarm_ns_) return;
  next_alarm_ns_ = time_ns;
  in.at(time_ns, [this, time_ns] {
    if (next_alarm_ns_ != time_ns) return;
    next_alarm_ns_ = INT64_MAX;
    frames_->deadlines.fire_due();
    for (const auto& n : nodes_) {
      if (n->worker_->has_bound()) const simulated_node::as_its_worker here(*n);
    }
  });
}

void simulated_node::pause(std::int64_t ns) {
  const char mine = 0;
  job_.in.at(job_.in.now_ns() + ns, [this, &mine] {
    const as_its_worker here(*this);
    detail::unpark(&mine, 1);
  });
  (void)detail::park({.what = "the simulated clock", .address = &mine});
}

}  // namespace strata::sim

// SPDX-License-Identifier: Apache-2.0
#include "sched/scheduler.hpp"

#include <string>

#include "context/overflow.hpp"
#include "context/program_locals.hpp"
#include "os/own_thread.hpp"
#include "os/topology.hpp"
#include "sched/lone_watch.hpp"
#include "sched/program_ticks.hpp"
#include "sched/registry.hpp"
#include "sched/suspended.hpp"

namespace strata::detail {

namespace {

// How long an owner may leave a request unanswered before a thief helps itself: well above the cost
// of forcing, so that it stays rare.
constexpr double force_after_us = 25;

// How often at least a worker that searches looks at others' deques.
constexpr double look_every_us = 2;

// Who gave way for so long was not alone on its core.
constexpr double away_us = 500;

// How soon a worker that has found injected work is expected to look for more.
constexpr double return_within_us = 1;

std::uint64_t to_ticks(double us, double ns_per_tick) {
  return static_cast<std::uint64_t>(us * 1000 / ns_per_tick);
}

}  // namespace

scheduler::scheduler(const options& wanted, const std::vector<int>& given, lone_watch* watch)
    : stacks(wanted.stack_bytes, &stack_main),
      preemption(*this, std::int64_t{wanted.preempt_us} * 1000),
      settings(wanted),
      rule(policy_of(wanted.policy)),
      places_(),
      idle_([&] { return wanted.workers != 0 ? wanted.workers : os::choose_workers().workers; }(),
            {this}),
      ns_per_tick_(os::ns_per_tick()),
      spin_ticks_(to_ticks(wanted.spin_us, ns_per_tick_)),
      away_ticks_(to_ticks(away_us, ns_per_tick_)),
      force_ticks_(to_ticks(force_after_us, ns_per_tick_)),
      look_ticks_(to_ticks(look_every_us, ns_per_tick_)),
      return_ticks_(to_ticks(return_within_us, ns_per_tick_)),
      started_(os::ticks()),
      watch_(watch) {
  if (watch_ != nullptr) watch_->begin(*this);
  const std::vector<int> allowed = given.empty() ? os::allowed_cpus() : given;
  const unsigned count = idle_.places();
  const os::topology& machine = os::topology::machine();
  const auto all = static_cast<unsigned>(allowed.size());
  oversubscribed_ = count > all;
  // Fewer workers than cores because of a quota: bound ones of several such processes would all sit
  // on the first cores.
  if (settings.bind && !oversubscribed_ && (wanted.workers != 0 || count == all))
    bound_to_ = bound_cpus(machine.place(allowed, all), count);
  bound_ = !bound_to_.cpus().empty();
  const std::vector<int> cpus = bound_ ? bound_to_.cpus() : machine.place(allowed, count);

  depot.prepare();
  for (unsigned i = 0; i < count; ++i) {
    places_.push_back(std::make_unique<place>(depot, *this, i));
    places_.back()->cpu = cpus[i];
    places_.back()->has_neighbours = count > 1;
    places_.back()->distributes = count > 1 && rule != policy::steal;
    if (const auto cpu = static_cast<std::size_t>(cpus[i]); bound_) {
      if (place_on_cpu_.size() <= cpu) place_on_cpu_.resize(cpu + 1);
      place_on_cpu_[cpu] = i;
    }
  }
  last_looks_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    for (const unsigned v : machine.steal_order(cpus, i)) {
      places_[i]->victims.push_back(places_[v].get());
    }
  }
  // Reading the topology takes milliseconds that no worker spent.
  started_ = os::ticks();
  for (auto& p : places_) p->time.start(started_);
  in_mailboxes = std::make_shared<held_items>(count);
  stacks.keep(count);
  watch_for_overflow(stacks);
  // By a worker before it sleeps first. Partner: the load when all do.
  std::atomic<bool> is_refused{false};
  try {
    for (auto& p : places_) {
      threads_.emplace_back([this, &p, &is_refused] {
        // Best effort: it costs speed, nothing else, where the system refuses it, or a cpu has just
        // been taken from us.
        if (bound_ && !os::bind_current_thread(p->cpu)) is_refused.store(true);
        thread_main(*p);
      });
    }
    // Started means ready: whoever enters next finds a sleeper whose place it can take.
    wait_idle();
    binding_ = std::to_string(count) + (count == 1 ? " worker" : " workers") + " on CPUs " +
               os::to_ranges(cpus) + (bound_ && !is_refused.load() ? ", bound" : ", not bound");
    if (is_refused.load()) binding_ += ", which the system refuses";
    if (wanted.workers == 0) binding_ += " (" + os::choose_workers().reason + ")";
    enter_registry(*this);
  } catch (...) {
    stop();
    throw;
  }
}

scheduler::~scheduler() {
  wait_idle();
  leave_registry(*this);
  clear_failure();  // reports what nobody was told
  give_up_waiters();
  stop();
  if (held_stacks() != 0) forget_descriptor_waits_of(*this);
}

// Who is suspended still is so for ever, and its stack is about to go. But who has been chosen from
// outside before it was forgotten goes on, and may wait anew: until nobody has.
void scheduler::give_up_waiters() {
  for (;;) {
    wait_idle();
    const std::uint64_t before = idle_.tally();
    gate->close();
    if (held_stacks() != 0) forget_parked_of(*this);
    while (foreign_wakers_.load(std::memory_order_acquire) != 0 || !gate->is_empty())
      std::this_thread::yield();
    if (is_idle() && idle_.tally() == before) return;
    gate->open();
  }
}

void scheduler::stop() {
  preemption.stop();
  stopping_.store(1, std::memory_order_seq_cst);
  for (unsigned i = 0; i < places_.size(); ++i) idle_.wake(i);
  for (std::thread& t : threads_) t.join();
  forget_overflow(stacks);
}

void scheduler::thread_main(place& p) {
  const os::own_thread here(("strata-" + std::to_string(p.id)).c_str());
  const signal_stack for_overflow;
  p.native = context_of_this_thread();
  p.exceptions = exceptions_here();
  p.os_thread.store(os::thread_number(), std::memory_order_relaxed);
  strata_current_worker = &p;
  if constexpr (carries_program_locals) begin_ticks_here();
  // The first thing is to sleep: this thread runs only while no thread from outside is in its
  // place.
  while (stopping_.load(std::memory_order_acquire) == 0) {
    sleep(p, stopping_, false);
    // Whoever woke us may rely on our look at others.
    if (task* t = find_work(p, stopping_, false, true)) t->type->run(*t, p);
    p.dispatch(stopping_, false);
  }
  strata_current_worker = &no_worker;
}

}  // namespace strata::detail

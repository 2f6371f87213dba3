// SPDX-License-Identifier: Apache-2.0
// Threads from outside: they take the place of a sleeping worker, or hand their work over and wait.
#include <algorithm>

#include "context/exceptions.hpp"
#include "context/overflow.hpp"
#include "os/topology.hpp"
#include "sched/foreign_waker.hpp"
#include "sched/lone_watch.hpp"
#include "sched/outside_section.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/fences.hpp"
#include "strata/error.hpp"

namespace strata::detail {

std::exception_ptr scheduler::enter(root_task& root) {
  // The caller may be a thread of another runtime: it must not keep a place, or a lock, while
  // others of its worker run, who may want it too. As our worker it is interrupted as any other.
  const uninterrupted guard;
  const std::uint64_t before = settings.profile ? ticks_in_fibers() : 0;
  if (const int i = lease(); i >= 0) {
    end_standing_in(static_cast<unsigned>(i));
    run_as_guest(*places_[static_cast<std::size_t>(i)], root);
  } else {
    inject(&root);
    // A worker will need about as long as a sleeper needs to wake up: look for a while first.
    for (const std::uint64_t began = os::ticks(); os::ticks() - began < spin_ticks_;) {
      if (root.state.load(std::memory_order_acquire) == root_task::ended) break;
      os::spin_pause();
    }
    std::uint32_t seen = root_task::running;
    // Release, because the worker that answers must see nothing of ours later than this; acquire
    // for its results.
    if (root.state.compare_exchange_strong(seen, root_task::awaited, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
      waiting_outside_.fetch_add(1, std::memory_order_relaxed);
      while (root.state.load(std::memory_order_acquire) != root_task::ended) {
        os::blocking_futex_wait(root.state, root_task::awaited);
      }
      waiting_outside_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (settings.profile) {
    // Fibers are measured on the workers, strands in the root.
    work_ticks.store(root.measure.work + ticks_in_fibers() - before, std::memory_order_relaxed);
    span_ticks.store(root.measure.span, std::memory_order_relaxed);
  }
  if (failure.is_there.load(std::memory_order_acquire)) {
    // Left behind by this root, perhaps.
    if (root.failure == nullptr) root.failure = failure.take();
    clear_failure();
  }
  return root.failure;
}

// Of use where nothing moves: relaxed counts are as old as that.
bool scheduler::is_awaited() const noexcept {
  return waiting_outside_.load(std::memory_order_relaxed) != 0 || idle_.somebody_is_guest();
}

// The place of the core that the caller runs on. In any other it would share that core with the
// worker that is bound there, until the kernel notices, which takes it 10 ms and more.
unsigned scheduler::place_near() const noexcept {
  const auto cpu = static_cast<std::size_t>(os::current_cpu());
  return cpu < place_on_cpu_.size() ? place_on_cpu_[cpu] : 0;
}

// Apart, since entering an empty region takes 50 ns.
[[gnu::noinline]] void scheduler::clear_untold() {
  if (const visit neighbours(*this); neighbours) neighbours->leave_loss_to_launcher();
  clear_failure();
}

// Takes a sleeper's place; -1 when there is none.
int scheduler::lease() {
  for (;;) {
    const int i = idle_.lease(place_near());
    // Looked at when the place is taken, because then nobody can clear it behind our back; a root
    // that began before would lose the tokens that it sends until then. Partner: clear_failure().
    if (i < 0 || !failure.is_there.load(std::memory_order_seq_cst)) return i;
    idle_.hand_back(static_cast<unsigned>(i));
    clear_untold();
  }
}

std::uint64_t scheduler::ticks_in_fibers() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& p : places_) sum += p->fiber_ticks.read();
  return sum;
}

void refuse_exit_of_root() {
  throw misuse_error("pthread_exit() in a function of runtime::run() that has a value to return");
}

void root_task::complete() noexcept {
  // Before anybody is told: what the root kept for itself may refer to what its caller owns.
  if (stack& mine = *this_place().current; mine.at_end != nullptr) mine.at_end(mine);
  const int place_of_guest = guest_place;
  place& here = this_place();
  scheduler& s = *here.owner;
  // While we run, it cannot be cleared.
  if (s.failure.is_there.load(std::memory_order_acquire)) failure = s.failure.take();
  // Acquire-release: our results for the waiter. Partners: place::dispatch() and
  // scheduler::enter().
  if (state.exchange(ended, std::memory_order_seq_cst) == awaited) {
    os::futex_wake(state, 1);
  }
  // A guest may sleep in its place. From its own place it sees the state by itself.
  if (place_of_guest >= 0 && here.id != static_cast<unsigned>(place_of_guest)) {
    s.wake_place(place_of_guest);
  }
}

void scheduler::run_as_guest(place& p, root_task& root) {
  // Tasks can overflow here too. Once for each outside thread, until it ends.
  static thread_local const signal_stack for_overflow;
  // Who calls from a handler or a destructor keeps its exceptions here: tasks begin with none, and
  // may end on another thread.
  const exceptions_in_flight outside = take_exceptions();
  worker* const outer = strata_current_worker;
  root.guest_place = static_cast<int>(p.id);
  p.time.enter(bucket::work);
  p.native = context_of_this_thread();
  if (outer->owner != nullptr) {
    // In a task of another runtime: what we run on is that task's stack.
    if (const stack* s = static_cast<place*>(outer)->current) {
      p.native.bottom = s->bottom;
      p.native.bytes = s->bytes;
    }
  }
  exceptions_in_flight* const exceptions_of_place = std::exchange(p.exceptions, exceptions_here());
  const int os_thread_of_place = p.os_thread.load(std::memory_order_relaxed);
  p.os_thread.store(os::thread_number(), std::memory_order_relaxed);
  strata_current_worker = &p;
  p.look_around_for(root.state);
  root.type->run(root, p);
  p.dispatch(root.state, true);
  strata_current_worker = outer;
  p.exceptions = exceptions_of_place;
  p.os_thread.store(os_thread_of_place, std::memory_order_relaxed);
  put_exceptions(outside);
  p.time.enter(bucket::idle);
  // What the root left behind goes to the place's own thread. So may what it injected, if nobody
  // was asleep then; and after a failure that thread tells who waits. The place must not look
  // asleep meanwhile, or wait_idle() would believe that all is done.
  if (!p.ready.empty() || is_left_for(p) || p.deque.maybe_work() || !p.overflow.empty() ||
      p.has_set_aside() || injected_.has_any() ||
      failure.is_there.load(std::memory_order_relaxed) || holds_something()) {
    return idle_.hand_back(p.id);
  }
  idle_.give_back(p.id);
  // The request that the place's own thread left when it fell asleep may have been answered while
  // we were here. Also where everybody sleeps: the next guest, in another place, has nobody else to
  // share with, and may never push again.
  for (place* victim : p.victims) victim->deque.ask();
  if (!all_sleep()) {
    // As in sleep(), but without the heavy fence, which would cost more than a small region. Shared
    // and injected work is seen all the same. Missed can only be what another is pushing right now,
    // a private item or a ready task: who pushes it runs it, at worst alone. Not so what is waived:
    // it is for us, and who waived it did not wake us while we were here.
    if (rule != policy::steal) asymmetric_fences::heavy();
    if (work_is_visible(p)) idle_.wake(p.id);
  } else if (is_left_for(p)) {
    idle_.wake(p.id);  // by one that has fallen asleep since we looked
  } else if (injected_.has_any()) {
    idle_.wake_one();
  } else if (watch_ != nullptr && watch_->is_asked()) {
    idle_.wake(p.id);  // who asked found nobody asleep. Partner: lone_watch::ask()
  }
  // The place's own thread has slept all the time.
  if (!memory_is_tidy() && !has_caretaker_.load(std::memory_order_relaxed)) idle_.wake(p.id);
  tell_idle_waiters();
  tell_neighbours_of_sleep();
}

void scheduler::inject(task* t) {
  const outside_section here;
  const uninterrupted guard;
  injected_.push(t);
  // First whoever is awake already, because it has taken in what brings this.
  if (idle_.anyone_parked() && !somebody_is_about_to_look())
    idle_.wake_one(place_futex::looking.place);
}

// Whether a worker searches; or one has found injected work a moment ago and is likely to be back
// before a sleeper would be awake, which costs the caller a system call and a microsecond. Called
// after publishing: who comes back sees what was published.
bool scheduler::somebody_is_about_to_look() const noexcept {
  const std::uint64_t began = os::ticks();
  do {
    if (searchers_.load(std::memory_order_seq_cst) != 0 || !injected_.has_any()) return true;
    if (began - found_injected_at_.load(std::memory_order_relaxed) > return_ticks_) return false;
    os::spin_pause();
  } while (os::ticks() - began < return_ticks_);
  return false;
}

void scheduler::continue_here(stack& s) {
  const foreign_waker here(*this);
  try {
    inject(&s);
  } catch (const std::bad_alloc&) {
    // Somebody waits for it: it goes where that takes no memory.
    stack_list one;
    one.append(s);
    make_ready(0, one);
  }
}

task* scheduler::take_injected() {
  task* const t = injected_.take();
  if (t != nullptr) found_injected_at_.store(os::ticks(), std::memory_order_relaxed);
  return t;
}

bool scheduler::is_kept_by_caller() const noexcept {
  const int caller = os::thread_number();
  const stack* const worked_for = watched_os_stack::worked_for_here();
  // The first is one of the second, and found at once.
  return this_worker().owner == this ||
         std::any_of(places_.begin(), places_.end(),
                     [caller](const auto& p) {
                       return p->os_thread.load(std::memory_order_relaxed) == caller;
                     }) ||
         (worked_for != nullptr && worked_for->home == this);
}

void scheduler::wait_idle(waits counted) {
  idle_waiters_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t epoch = idle_epoch_.load(std::memory_order_acquire);
    if (is_idle(counted) && !failure.is_awaited()) break;
    os::blocking_futex_wait(idle_epoch_, epoch);
  }
  idle_waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// A worker with everything that inlined code does not need to see. "Place" because the OS thread in
// it can change: its own thread sleeps while a thread from outside uses it.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "context/exceptions.hpp"
#include "context/stack.hpp"
#include "sched/accounts.hpp"
#include "sched/next_take.hpp"
#include "sched/policy.hpp"
#include "sched/spare_stack.hpp"
#include "sched/spin_window.hpp"
#include "sched/stack_list.hpp"
#include "sched/worker_numbers.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {

class place : public worker {
 public:
  place(frame_depot& depot, scheduler& s, unsigned index);

  // Runs tasks until *leave is not 0. Called on the OS thread's own stack.
  void dispatch(const std::atomic<std::uint32_t>& leave, bool guest);

  // The next stacks may follow each other for a while, unless `leave` becomes something else than
  // 0.
  void look_around_for(const std::atomic<std::uint32_t>& leave) noexcept {
    leave_ = &leave;
    switches_left_ = has_set_aside() ? 0 : switches_max;
  }

  // Whoever runs here may go on instead of giving way: nothing else waits.
  bool yields_to_nobody() noexcept;
  // At a glance: nothing here, and nothing brought here by others.
  [[nodiscard]] bool has_nothing_else() const noexcept;
  // The same of all queues that the dispatcher looks into.
  [[nodiscard]] bool nothing_waits() const noexcept;

  // ---- stacks ----
  // On the worker's own stack: continues s; returns when s has ended or is suspended.
  void continue_stack(stack& s);
  // On a pooled stack, which will be continued, with the exceptions that are in flight on it:
  // leaves it for the next stack in the ready queue, or else for the worker's own; `action(place,
  // argument)` runs there, as the first thing.
  void leave_stack(void (*action)(place&, void*), void* argument) noexcept;
  // The same for who has its argument under a lock that `action` gives back; with what the stack
  // shows to people meanwhile. False, and nothing has happened: a new stack would have to be made
  // first. Interruptions are off.
  bool leave_stack_at_once(void (*action)(place&, void*), void* argument, const char* what,
                           const void* where) noexcept;
  // Behind all that are ready, and back when its turn comes. On a stack.
  void yield() noexcept;
  // Leaves it for t, which begins on another stack; before that, `commit(calling stack, argument)`.
  // False, and nothing has happened: t is not the next in the ready queue, needs no stack of the
  // usual size, or the dispatcher should have a look. Interruptions are off.
  bool leave_stack_for(task& t, void (*commit)(stack&, void*), void* argument) noexcept;
  // On a pooled stack whose task has ended: it begins the next task, or is left for good.
  void end_stack(stack& s) noexcept;
  // What the task of this stack was waited for by: goes on when that has ended, unless others are
  // ready. The last thing that the task does.
  void end_in(stack& waiter) noexcept;
  // Whoever comes from a switch: does what the context that was left has asked for.
  void arrive() noexcept {
    const auto action = std::exchange(action_, nullptr);
    if (action != nullptr)
      action(*this, argument_);
    else
      ready.end_rotation();
  }
  // ---- ready tasks ----
  // t is to run after those that wait already: here, or where the policy sends it. By whoever runs
  // here. False: there is no memory for one more.
  [[nodiscard]] bool try_put(task* t) noexcept {
    if (!distributes) [[likely]]
      return ready.try_push(t);
    return try_put_by_policy(t);
  }
  [[nodiscard]] bool try_put_by_policy(task* t) noexcept;
  // A stack has been left, and is ready all the same: another worker may take it, for what goes on
  // here instead may never give way. After it has been put into `ready`.
  void offer_what_was_left() noexcept;
  // To be run here, whatever the policy says.
  void queue(stack& s) noexcept {
    if (!ready.try_push(&s)) [[unlikely]]
      set_aside(s);
  }
  waived waive;
  bool distributes = false;  // by another policy than `steal`, to somebody
  // Relaxed: a hint for those who could waive something.
  std::atomic<bool> looks_for_work{false};
  // Has begun and continued nothing for a while, though others wait here. Relaxed: said by the
  // caretaker, taken back here, and who does not know it yet waits a little longer.
  std::atomic<bool> stands_still{false};

  // A stack cannot be refused: what it waited for has happened. So it never takes memory.
  void put_stack(stack& s) noexcept {
    if (s.pinned_to == nullptr) [[likely]]
      return put_free_stack(s);
    s.pinned_to->deliver(s);
  }
  // The same for one that is not pinned.
  void put_free_stack(stack& s) noexcept {
    if (!try_put(&s)) [[unlikely]]
      set_aside(s);
  }
  // To be run before all others.
  void put_stack_in_front(stack& s) noexcept {
    if (!ready.try_push_front(&s)) [[unlikely]]
      set_aside(s);
  }
  // All from `first` on, linked by next_free, none of them pinned.
  void put_stacks(stack* first) noexcept;
  // Whatever runs next here, a bound one or the first that is ready, others are ready behind it.
  [[nodiscard]] bool leaves_others_behind() const noexcept {
    return ready.size() > (has_bound() ? 0U : 1U);
  }
  // Ready, and there was no memory to queue them: they go into the queue, the first one first, as
  // soon as there is room. By whoever runs here.
  [[nodiscard]] bool has_set_aside() const noexcept { return !set_aside_.empty(); }
  void queue_set_aside() noexcept;

  // Stacks that may go on here only: pinned threads, and interrupted ones. Any thread.
  void deliver(stack& s) noexcept;
  [[nodiscard]] bool try_put_bound(task* t) noexcept { return bound_.try_push(t); }
  [[nodiscard]] bool has_delivered() const noexcept {
    return delivered_.load(std::memory_order_seq_cst) != nullptr;
  }
  [[nodiscard]] bool has_bound() const noexcept { return !bound_.empty() || has_delivered(); }
  // For people, without those that have been delivered.
  [[nodiscard]] const ready_queue& bound() const noexcept { return bound_; }
  // Of those in their turn with the ready queue, by whoever runs here. Null: it is not theirs.
  task* next_bound();
  // On the stack of a thread that has run for long: gives it up as yield() would, and goes on here.
  // It is marked as one that is not preemptible.
  void give_way() noexcept;
  std::atomic<int> os_thread{0};  // the one that is in this place

  // Stacks that others have made ready and that ran here before, linked by next_free.
  std::atomic<stack*> batches{nullptr};
  [[nodiscard]] bool has_batches() const noexcept {
    return batches.load(std::memory_order_seq_cst) != nullptr;
  }
  // Puts them into the ready queue of `taker`, which is the caller's place; false when there were
  // none.
  bool take_batches(place& taker);

  // A stack on which t begins when it is continued; null: there is none of the usual ones.
  stack* prepare_stack(task& t) noexcept;
  // On the worker's own stack, as task_type::run: t begins on a stack of the usual size. Where
  // there is none it waits until one comes back, and lets those go on meanwhile that have one.
  void begin(task& t) noexcept;
  // Null: there is none.
  stack* usual_stack() noexcept;
  // Null: one has to be made ready first, which takes the system some time.
  stack* stack_at_hand() noexcept;
  // The next task that needs one will have it. Throws std::system_error when there is none.
  void require_spare();
  void give_stack(stack* s) noexcept;
  // By whoever runs here, or has taken the place from a sleeper.
  stack* take_spare() noexcept { return spare_.take(); }
  // Others want it more.
  void give_up_spare() noexcept;
  [[nodiscard]] bool has_spare() const noexcept { return spare_.is_there(); }
  // One that somebody has taken from a pool of our runtime, on whatever OS thread.
  void adopt(stack& s) noexcept;

  stack* current = nullptr;  // the pooled stack that runs here; null on the worker's own
  context native;            // the worker's own stack
  accounts time;
  spin_window idle_spin;
  std::vector<place*> victims;  // nearest first
  unsigned woke = 0;            // the last sleeper that was woken for what was shared here
  int cpu = -1;
  next_take next_stolen;  // from another node
  // Of threads that were made and that ended here. See thread_limit.cpp.
  counter threads_made;
  counter threads_ended;
  std::atomic<unsigned> until_room_is_checked{1};  // threads made; written by the worker alone
  static constexpr std::atomic<bool> nobody_to_look_for{false};
  const std::atomic<bool>* looks = &nobody_to_look_for;  // for messages, after every task
  [[nodiscard]] bool looks_for_messages() const noexcept {
    return looks->load(std::memory_order_relaxed);
  }
  exceptions_in_flight* exceptions = nullptr;  // of the OS thread that is in this place
  std::uint32_t random = 1;

 private:
  // From stack to stack in a row, before the dispatcher looks at other queues, messages and whether
  // the OS thread has to leave.
  static constexpr unsigned switches_max = 32;

  [[nodiscard]] bool others_made_ready() const noexcept;
  bool may_go_on() noexcept;
  // Need no new stack. Null: there is none, or what is there needs one.
  task* next_of_those_with_stacks();
  task* newest_without_stack();
  task* oldest_without_stack();
  // For a task that may begin but need not. False: not yet, and nothing has been waited for.
  bool has_stack_for_oldest() noexcept;
  // As begin() needs it.
  stack* take_stack() noexcept;
  stack* next_stack() noexcept;
  stack* next_in_turn() noexcept;
  void look_at_what_came();
  void begin_oldest();
  void yield_at_length() noexcept;
  bool next_at_once(stack*& next) noexcept;
  void begin_on(stack& s, task& t) noexcept;
  // `next`: null for the worker's own stack.
  void switch_to(stack* next, void (*action)(place&, void*), void* argument) noexcept;
  void switch_with_exceptions(stack* next, void (*action)(place&, void*), void* argument) noexcept;
  void switch_with_all(stack* next, void (*action)(place&, void*), void* argument) noexcept;
  // The dispatcher is to look.
  void set_aside(stack& s) noexcept {
    set_aside_.append(s);
    switches_left_ = 0;
  }

  spare_stack spare_;
  unsigned refused_to_oldest_ = 0;  // in a row: see has_stack_for_oldest()
  stack* handed_over_ = nullptr;    // to go on when the task that runs here has ended
  void (*action_)(place&, void*) = nullptr;
  void* argument_ = nullptr;
  const std::atomic<std::uint32_t>* leave_ = nullptr;  // not 0: the OS thread wants to leave
  stack_list set_aside_;
  ready_queue bound_;
  std::atomic<stack*> delivered_{nullptr};  // linked by next_free
  bool bound_had_its_turn_ = false;
  // Under policies other than `steal`: what becomes of the next tasks that are put, and how many.
  bool run_stays_ = true;
  unsigned run_left_ = 0;
  std::size_t run_share_ = 1;  // when that was decided
  unsigned idle_yields_ = 0;
  unsigned switches_left_ = 0;  // from stack to stack, before the dispatcher looks around
  const worker_number number_;  // for worker::number
};

// What every pooled stack runs for ever: the body of one task after another. Not noexcept: see
// context/last_frame.cpp.
void stack_main(void* argument);

inline place& this_place() noexcept { return static_cast<place&>(this_worker()); }

// The one that stands for the task that runs here, also where that goes on on another (see
// on_behalf_of): who holds a lock or a turn, who has made a scope. Null: outside, or in a fiber.
inline const stack* stack_of_task() noexcept {
  const worker& w = this_worker();
  const stack* const s = w.owner != nullptr ? static_cast<const place&>(w).current : nullptr;
  return s != nullptr ? s->self : nullptr;
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// What becomes of tasks where stacks run out. Who asks for a thread, or forks at the end of its
// stack, is refused. But a task that has been taken from a queue is nobody's to refuse: it was
// stolen, came from another node, or its parent waits for it already. It begins on a stack beyond
// those that threads can have. Where the address space is exhausted, too, it waits for one to come
// back, and the worker lets those go on that have one; if none can, one of those begins that are
// kept for that, a stack for each worker: what is next in a deque is a task that all below it wait
// for, and can run to its end.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "os/futex.hpp"
#include "sched/scheduler.hpp"
#include "sched/waiting_stacks.hpp"

namespace strata::detail {

// So often whoever wants a stack lets those go on that have one before it takes one of the kept
// ones: those who go on may wait for our task while they look for it all the time.
static constexpr unsigned others_first = 256;

stack* scheduler::take_stack() noexcept {
  try {
    if (!stacks.only_kept_are_left()) return stacks.take();
  } catch (const std::exception&) {
    // Another was faster.
  }
  if (stack* const s = pools_.returned()) return s;
  if (stack* const s = pools_.further()) return s;
  return stack_of_a_sleeper();
}

// Who runs needs it as soon as we do, and gives it up where somebody waits (place::dispatch()).
stack* scheduler::stack_of_a_sleeper() noexcept {
  for (const auto& p : places_) {
    if (!p->has_spare()) continue;
    stack* s = nullptr;
    idle_.wake(p->id, [&] { s = p->take_spare(); });
    if (s != nullptr) return s;
  }
  return nullptr;
}

bool scheduler::nobody_will_return_a_stack() noexcept {
  if (out_of_stacks.load(std::memory_order_seq_cst) + idle_.sleepers() < places_.size())
    return false;
  if (!deadlines.empty() || injected_.has_any() || around_.is_open()) return false;
  for (const auto& p : places_) {
    if (p->has_batches() || p->has_delivered()) return false;
  }
  try {
    return who_waits().for_the_world == 0;
  } catch (const std::exception&) {
    return false;
  }
}

bool place::has_stack_for_oldest() noexcept {
  stack* s = take_spare();
  if (s == nullptr && !owner->stacks.only_kept_are_left()) s = usual_stack();
  if (s == nullptr) s = owner->pools_.returned();
  if (s == nullptr) s = owner->stack_of_a_sleeper();
  if (s == nullptr && ++refused_to_oldest_ >= others_first) s = owner->stacks.take_kept();
  if (s == nullptr) return false;
  refused_to_oldest_ = 0;
  adopt(*s);
  spare_.put(*s);
  return true;
}

static bool needs_no_stack(const task& t) noexcept { return t.type->run != &run_on_stack; }

// A token. Nothing else can travel but branches, which lie on their parent's stack; that they are
// looked for there is because a thief may run the task meanwhile, and free it.
task* place::oldest_without_stack() {
  const auto is_token = [this](const task* marked) {
    return can_travel(marked) && !owner->pools_.holds(marked);
  };
  task* t = nullptr;
  return deque.steal_if(t, is_token) == steal_outcome::taken ? t : nullptr;
}

task* place::newest_without_stack() {
  // Put back as it was: its owner looks for it there, with its mark.
  task* t = deque.pop();
  if (t == nullptr && !overflow.empty()) t = pop_overflow();
  if (t == nullptr || needs_no_stack(*unmarked(t))) return t;
  push(t);
  return nullptr;
}

task* place::next_of_those_with_stacks() {
  if (has_batches()) take_batches(*this);
  if (distributes) owner->take_waived(*this);
  if (stack* const s = set_aside_.take_first()) return s;
  if (task* const t = has_bound() ? next_bound() : nullptr) {
    if (needs_no_stack(*t)) return t;
    (void)try_put_bound(t);  // where it was
  }
  for (std::size_t n = ready.size(); n > 0; --n) {
    task* const t = ready.pop();
    if (t == nullptr) break;
    if (needs_no_stack(*t)) return t;
    ready.push(t);
  }
  if (task* const t = owner->take_injected()) {
    if (needs_no_stack(*t)) return t;
    push(t);
  }
  return unmarked(newest_without_stack());
}

namespace {

// A worker that waits for a stack, and how long nothing has happened meanwhile, here or on others.
class want_of_stacks {
 public:
  explicit want_of_stacks(scheduler& s) noexcept : s_(s) { something_ran(); }
  want_of_stacks(const want_of_stacks&) = delete;
  want_of_stacks& operator=(const want_of_stacks&) = delete;

  void something_ran() noexcept {
    quiet_since_ns_ = os::now_ns();
    steps_ = s_.steps();
  }
  // Whoever waits here runs what it finds, so it counts as one that waits only meanwhile.
  void pause() noexcept {
    constexpr std::int64_t pause_ns = 100'000;
    static os::futex_word nobody_wakes{0};
    s_.out_of_stacks.fetch_add(1, std::memory_order_seq_cst);
    os::blocking_futex_wait(nobody_wakes, 0, pause_ns);
    if (os::now_ns() - quiet_since_ns_ >= quiet_ns_max) look_for_progress();
    s_.out_of_stacks.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  void look_for_progress() noexcept {
    const bool for_good = s_.nobody_will_return_a_stack();
    // After that: what ran before the others were seen to wait has been counted.
    if (s_.steps() != steps_) return something_ran();
    if (for_good) {
      // Every stack waits for a task that would need another one.
      say("");
      std::_Exit(1);
    }
    // What it waits for may come from elsewhere, or never.
    if (!s_.told_of_no_stacks.exchange(true, std::memory_order_relaxed))
      say("; a task waits for one to come back");
  }
  void say(const char* more) const noexcept {
    try {
      std::fprintf(stderr, "strata: %s%s\n", s_.stacks.exhausted().what(), more);
    } catch (const std::exception&) {
      std::fputs("strata: out of stacks, and of memory to say more\n", stderr);
    }
  }

  // Threads from outside may hold what is waited for.
  static constexpr std::int64_t quiet_ns_max = 3'000'000'000;
  scheduler& s_;
  std::int64_t quiet_since_ns_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace

stack* place::take_stack() noexcept {
  const auto adopted = [this](stack* s) {
    adopt(*s);
    return s;
  };
  if (stack* const s = owner->take_stack()) return adopted(s);
  want_of_stacks want(*owner);
  for (unsigned rounds = 1;; ++rounds) {
    look_around_for(*leave_);
    if (looks_for_messages()) {
      if (const scheduler::visit n(*owner); n) n->look();
    }
    task* const t = next_of_those_with_stacks();
    if (t != nullptr) {
      t->type->run(*t, *this);
      want.something_ran();
    }
    if (stack* const s = stack_at_hand()) return s;
    if (stack* const s = owner->pools_.returned()) return adopted(s);
    if (stack* const s = owner->stack_of_a_sleeper()) return adopted(s);
    if (t != nullptr && rounds % others_first != 0) continue;
    if (stack* const s = owner->stacks.take_kept()) return adopted(s);
    if (t == nullptr) want.pause();
  }
}

}  // namespace strata::detail

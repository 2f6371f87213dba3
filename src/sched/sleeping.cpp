// SPDX-License-Identifier: Apache-2.0
// A worker that sleeps, and never misses work that appears meanwhile.
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "sched/lone_watch.hpp"
#include "sched/scheduler.hpp"
#include "sched/without_worker.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

thread_local place_futex::looker place_futex::looking;

bool scheduler::all_sleep() const noexcept { return idle_.sleepers() == places_.size(); }

// Not where a call, or a time, will bring work, perhaps soon. Relaxed: who begins to wait while we
// look is seen at the next look.
bool scheduler::last_is_awaited_asleep() const noexcept {
  if (idle_waiters_.load(std::memory_order_relaxed) == 0 &&
      !failure.is_there.load(std::memory_order_relaxed))
    return false;
  return idle_.sleepers() + 1 == places_.size() && deadlines.empty() &&
         calls_in_progress.load(std::memory_order_relaxed) == 0;
}

void scheduler::tell_neighbours_of_sleep() noexcept {
  const visit n(*this);
  if (!n || !all_sleep()) return;
  n->all_sleep();
  if (is_idle(waits::none)) n->node_is_idle();
}

std::optional<std::uint64_t> scheduler::tally_if_nothing_moves() const noexcept {
  // Who leaves something for another and falls asleep then has done so before we read this.
  const std::uint64_t tally = idle_.tally();
  if (idle_.sleepers_of(tally) != places_.size()) return std::nullopt;
  for (const auto& p : places_) {
    if (is_left_for(*p)) return std::nullopt;
  }
  if (idle_.tally() != tally) return std::nullopt;  // somebody may have taken it meanwhile
  return tally;
}

// What others have brought is looked at first: it may be a completion's own last signal, and who
// has taken that meanwhile is awake, or done with it.
std::optional<std::uint64_t> scheduler::tally_if_failure_can_be_told() noexcept {
  if (!failure.is_awaited() || injected_.has_any()) return std::nullopt;
  return tally_if_nothing_moves();
}

void scheduler::sleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest) {
  // From the announcement until we are awake the place may be somebody else's: nothing of it is
  // touched, and what belongs to this thread is put back afterwards.
  const bool stands_in = !oversubscribed_ && p.idle_spin.is_alone();
  if (watch_ != nullptr && watch_->is_asked()) {
    const without_worker as_from_outside;
    watch_->answer();
  }
  const bool looks = watch_ != nullptr && p.id == 0 && !guest;
  const context mine = p.native;
  exceptions_in_flight* const exceptions = p.exceptions;
  const bool is_tidy = tidy() == os::futex_forever_ns;
  if (stacks.only_kept_are_left()) p.give_up_spare();
  p.time.enter(bucket::idle);
  // From now on every owner answers at its next push. Announce, fence, look again: a push that
  // missed the request is one that we see now. Partners: split_deque::push() and tend(), inject(),
  // root_task::complete().
  for (place* victim : p.victims) victim->deque.ask();
  idle_.announce(p.id, guest);
  // Once more, because an owner that answered the first request before the announcement woke
  // nobody.
  for (place* victim : p.victims) victim->deque.ask();
  if (!all_sleep()) asymmetric_fences::heavy();
  tell_idle_waiters();
  tell_neighbours_of_sleep();
  // The last to fall asleep tells of a failure. Several may see that it can be told; but when one
  // of them has told it those go on who have heard, and may wait for what does move.
  const std::optional<std::uint64_t> still = tally_if_failure_can_be_told();
  const bool stay =
      still || work_is_visible(p) || leave.load(std::memory_order_seq_cst) != root_task::running;
  const std::optional<std::uint64_t> awake = stay ? idle_.cancel(p.id, guest) : std::nullopt;
  if (!awake) {
    bool cares = false;
    const auto doze = [&](os::futex_word& state, std::uint32_t seen, sleeper who, bool idle) {
      const auto stood_in = [&] {
        return idle && stands_in && stand_in({&state, who, p.id}, state, seen);
      };
      // What cannot wait comes first.
      const bool care_can_wait = !somebody_may_stand_still();
      if (care_can_wait && stood_in()) return;
      std::int64_t most_ns = take_care(p, is_tidy, cares);
      if (!care_can_wait && !cares && stood_in()) return;
      if (looks) most_ns = sooner(most_ns, watch_->look_ns());
      if (most_ns == 0) return;
      const auto outcome =
          os::blocking_futex_wait_as(static_cast<std::uint32_t>(who), state, seen, most_ns);
      if (!looks || outcome != os::futex_outcome::timed_out) return;
      // The place may be lent away meanwhile, or this thread woken.
      const without_worker as_from_outside;
      watch_->look();
    };
    if (idle_.wait(p.id, guest, doze)) p.events.parks.add();
    if (cares) give_up_care(p);
  } else if (awake == still) {
    failure.tell(p);
  }
  p.native = mine;
  p.exceptions = exceptions;
  p.look_around_for(leave);
}

void place_futex::wake(os::futex_word& word, sleeper who) const noexcept {
  if (looking.word == &word && looking.who == who) return;
  os::futex_wake_those(static_cast<std::uint32_t>(who), word, INT32_MAX);
  // The word was changed before. Partner: stand_in().
  if (owner->standing_in_.load(std::memory_order_seq_cst) == &word) owner->rouse_stand_in();
}

void scheduler::rouse_stand_in() noexcept {
  if (const visit n(*this); n) n->rouse_stand_in();
}

// A guest has come, and computes where the place's own thread may be standing in: messages would
// wait until it lets go of the core. What comes while the guest sleeps is for the guest.
void scheduler::end_standing_in(unsigned i) noexcept {
  os::futex_word& state = idle_.state_of(i);
  if (standing_in_.load(std::memory_order_seq_cst) != &state) return;
  os::futex_wake_those(static_cast<std::uint32_t>(sleeper::own_thread), state, INT32_MAX);
  rouse_stand_in();
}

// Sleeps where messages come in, one thread at a time; not on a core that others want, where a
// receiver, whose turns are short and who may run elsewhere, is there sooner. The place may be lent
// away meanwhile, so that what they bring is brought by somebody from outside, as by a receiver.
bool scheduler::stand_in(const place_futex::looker& me, os::futex_word& state,
                         std::uint32_t seen) noexcept {
  const visit n(*this);
  if (!n) return false;
  // Seq_cst: whoever changes our state from now on rouses us. Release: what the one before did.
  const os::futex_word* holder = nullptr;
  if (!standing_in_.compare_exchange_strong(holder, &state, std::memory_order_seq_cst,
                                            std::memory_order_relaxed)) {
    return false;
  }
  bool did = false;
  {
    const without_worker as_from_outside;
    place_futex::looking = me;
    did = n->stand_in(state, seen);
    place_futex::looking = {};
  }
  standing_in_.store(nullptr, std::memory_order_release);
  return did;
}

void scheduler::tell_idle_waiters() noexcept {
  if (idle_waiters_.load(std::memory_order_seq_cst) == 0) return;
  idle_epoch_.fetch_add(1, std::memory_order_release);
  os::futex_wake(idle_epoch_, INT32_MAX);
}

}  // namespace strata::detail

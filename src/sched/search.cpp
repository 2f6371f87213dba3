// SPDX-License-Identifier: Apache-2.0
// An idle worker: searches for a while, politely, then sleeps, and never misses work that appears
// meanwhile.
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sched/lone_watch.hpp"
#include "sched/scheduler.hpp"
#include "sched/without_worker.hpp"

namespace strata::detail {

thread_local place_futex::looker place_futex::looking;

// One look at everybody. A victim that has nothing to share is asked to share at its next push.
struct scheduler::search {
  static constexpr std::size_t most_at_once = 512;
  place& p;
  bool raced = false;

  task* everywhere() {
    raced = false;
    for (place* victim : p.victims) {
      task* t = nullptr;
      switch (victim->deque.steal(t)) {
        case steal_outcome::taken:
          p.events.steals.add();
          p.events.read_modify_writes.add();
          // The next thief, often this one, should find something at once: the victim shares again
          // at its next push, and while others sleep so does the thief, which wakes one of them.
          victim->deque.ask_again();
          if (p.owner->idle_.anyone_parked()) p.deque.ask();
          return unmarked(t);
        case steal_outcome::lost_race:
          p.events.steals_lost.add();
          p.events.read_modify_writes.add();
          raced = true;
          break;
        case steal_outcome::empty:
          p.events.steals_empty.add();
          victim->deque.ask();
          break;
      }
    }
    return nullptr;
  }

  // For owners that have private work and do not answer: they are deep in something long. True when
  // another look is worth it.
  bool force_somebody() {
    for (place* victim : p.victims) {
      if (p.owner->rule == policy::steal ? take_ready(*victim) : rescue(*victim)) return true;
      if (victim->deque.maybe_work() && !victim->deque.has_shared() && force(*victim)) return true;
    }
    return false;
  }

  bool force(place& victim) {
    const bool shared = victim.deque.force();
    // One to be alone at it; then the split goes up, and stays there.
    p.events.read_modify_writes.add(shared ? 3 : 1);
    if (shared) p.events.forced.add();
    return shared;
  }

  // Half of what waits in the victim's ready queue.
  bool take_ready(place& victim) {
    if (victim.has_batches() && victim.take_batches(p)) return true;
    if (victim.ready.empty()) return false;
    std::array<task*, most_at_once> taken;
    const std::size_t most = std::min(taken.size(), victim.ready.size() / 2 + 1);
    if (!p.ready.try_reserve(most)) return false;
    p.events.read_modify_writes.add();
    const std::size_t n = victim.ready.take_half(taken.data(), most);
    queue(taken.data(), n);
    p.events.hops.add(n);
    return n != 0;
  }

  // All that waits for one that stands still. If it has begun to move, it waits until we are out.
  bool rescue(place& victim) {
    if (!victim.stands_still.load(std::memory_order_relaxed)) return false;
    std::array<task*, most_at_once> taken;
    if (!p.ready.try_reserve(taken.size())) return false;
    std::size_t n = 0;
    victim.ready.as_thief([&] {
      n = victim.ready.take_oldest(taken.data(), taken.size());
      if (p.owner->rule != policy::rotator) return;
      auto& waived = p.owner->predecessor_of(victim).waive.to_successor;
      while (n < taken.size()) {
        task* const t = waived.pop();
        if (t == nullptr) break;
        taken[n++] = t;
      }
    });
    queue(taken.data(), n);
    p.events.rescues.add(n);
    p.owner->left_behind_the_first(p);
    const bool brought = victim.has_batches() && victim.take_batches(p);
    return brought || n != 0;
  }

  // There is room for them.
  void queue(task* const* some, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i) (void)p.ready.try_push(some[i]);
  }
};

task* scheduler::find_work(place& p, const std::atomic<std::uint32_t>& leave, bool guest,
                           bool slept) {
  task* found = nullptr;
  do {
    found = search_or_sleep(p, leave, guest, slept);
  } while (found == nullptr && slept);
  return found;
}

// Whoever wakes a worker, or sees one search, relies on it: it either sees in the end what the
// other brought, which pass_on() is for, or sleeps, which has a look of its own.
task* scheduler::search_or_sleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest,
                                 bool& slept) {
  // What everybody may do before only one goes on.
  constexpr unsigned rounds_for_all = 4;
  // Who finds nothing for so long looks at others' deques less and less often, so that it finds
  // what appears after half as long again as it has waited anyway: each look costs the owner of a
  // deque that is in use several cache misses, which is more than all of a small region.
  constexpr unsigned eager_rounds = 8;
  p.next_stolen.fetch();
  p.time.enter(bucket::steal);
  if (p.distributes) p.looks_for_work.store(true, std::memory_order_relaxed);
  search look{p};
  bool searching = false;
  bool searched = false;
  const bool has_slept = std::exchange(slept, false);
  task* found = nullptr;
  std::uint64_t began = os::ticks();
  std::uint64_t forced = began;
  std::uint64_t looked = began;
  std::uint64_t now = began;
  bool due = false;  // a look, however recent the last one is
  unsigned round = 0;
  visit neighbours(*this);
  bool polling = false;
  bool gave_way = oversubscribed_;  // it does so all the time
  while (leave.load(std::memory_order_acquire) == root_task::running) {
    // The dispatcher takes it. What is ready here was made so by a message.
    if (is_left_for(p) || !p.ready.empty() || p.has_set_aside()) break;
    // A guest may have left work in this place while we slept.
    if (has_slept && (p.deque.maybe_work() || !p.overflow.empty())) break;
    found = take_injected();
    if (found == nullptr &&
        (due || round < eager_rounds || now - looked > std::min((now - began) / 2, look_ticks_))) {
      due = false;
      looked = now;
      found = look.everywhere();
    }
    if (found == nullptr && neighbours) found = neighbours->take(p, p.next_stolen);
    if (found != nullptr) break;
    if (neighbours) {
      // Not before, because saying so costs as much as finding something at once.
      if (!polling) neighbours->begin_polling();
      polling = true;
      // What arrives is injected, or makes a stack ready.
      if (neighbours->poll()) {
        now = os::ticks();
        continue;
      }
      if (round == rounds_for_all) neighbours->want_work();
    }

    now = os::ticks();
    if (!gave_way && now - began > p.patience.ticks_alone()) {
      gave_way = true;
      sched_yield();
      const std::uint64_t before = std::exchange(now, os::ticks());
      if (now - before > away_ticks_) p.patience.others_wait();
    }
    bool give_up = now - began > p.patience.ticks();
    if (++round == rounds_for_all && !searching && !give_up) {
      // At most one worker searches; the others sleep, and are woken one by one while there is more
      // than one can take.
      searching = searchers_.fetch_add(1, std::memory_order_seq_cst) == 0;
      searched = searching;
      if (!searching) {
        searchers_.fetch_sub(1, std::memory_order_seq_cst);
        give_up = true;
      }
    }
    if (now - forced > force_ticks_ || give_up) {
      forced = now;
      if (look.force_somebody()) {
        if (!p.ready.empty()) break;
        due = true;
        continue;
      }
    }
    if (give_up && !look.raced) {
      if (searching) {
        searchers_.fetch_sub(1, std::memory_order_seq_cst);
        searching = false;
      }
      p.time.rename(bucket::steal_wait);
      if (neighbours) {
        neighbours->end_polling();
        polling = false;
        neighbours->worker_sleeps();
        neighbours->want_work();
        neighbours.end();
      }
      // Asleep it is known to be idle, and a guest may take its place.
      p.looks_for_work.store(false, std::memory_order_relaxed);
      sleep(p, leave, guest);
      now = os::ticks();
      slept = true;
      break;
    } else if (oversubscribed_) {
      sched_yield();
    } else if (round >= eager_rounds) {
      // Not while it looks every time: a pause is 40 ns on some processors, and what is there at
      // once should be found at once.
      os::spin_pause();
    }
  }
  if (searching) searchers_.fetch_sub(1, std::memory_order_seq_cst);
  if (polling) neighbours->end_polling();
  if (neighbours && found != nullptr && found->type->wire != nullptr) neighbours->begins_token();
  if (searched) p.patience.was_idle_for(now - began);
  // Those who brought work while we searched left it to us, and those who shared one task may have
  // more and never push again.
  if (!slept) pass_on(p);
  if (p.distributes) p.looks_for_work.store(false, std::memory_order_relaxed);
  p.time.enter(bucket::work);
  return found;
}

// What we cannot take, the next one may, with force if need be.
void scheduler::pass_on(const place& p) noexcept {
  if (!idle_.anyone_parked() || searchers_.load(std::memory_order_seq_cst) != 0) return;
  // We are no longer relied on, and then look. Partners: tend(), ready_appeared().
  asymmetric_fences::full();
  if (others_have_work(p) || (rule == policy::steal && p.ready.size() > 1)) {
    idle_.wake_one(p.id + 1);
  }
}

bool scheduler::work_is_visible(const place& p) noexcept {
  return others_have_work(p) || is_left_for(p) || !p.ready.empty();
}

bool scheduler::others_have_work(const place& p) noexcept {
  if (holds_something()) return true;
  if (injected_.has_any()) return true;
  // Not work, but to be seen to before anybody sleeps.
  if (watch_ != nullptr && watch_->is_asked()) return true;
  for (const place* victim : p.victims) {
    if (victim->deque.maybe_work()) return true;
    if (rule == policy::steal && (!victim->ready.empty() || victim->has_batches())) return true;
  }
  return false;
}

// Among the workers of this node whoever offers something to other nodes is awake, and looks here
// before it sleeps.
bool scheduler::holds_something() noexcept {
  const visit n(*this);
  return n && n->holds_something();
}

bool scheduler::all_sleep() const noexcept { return idle_.sleepers() == places_.size(); }

void scheduler::tell_neighbours_of_sleep() noexcept {
  const visit n(*this);
  if (!n || !all_sleep()) return;
  n->all_sleep();
  if (is_idle()) n->node_is_idle();
}

bool scheduler::nothing_moves() const noexcept {
  // Who leaves something for another and falls asleep then has done so before we read this.
  const std::uint64_t tally = idle_.tally();
  if (idle_.sleepers_of(tally) != places_.size()) return false;
  for (const auto& p : places_) {
    if (is_left_for(*p)) return false;
  }
  return idle_.tally() == tally;  // or somebody has taken it meanwhile
}

void scheduler::sleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest) {
  // From the announcement until we are awake the place may be somebody else's: nothing of it is
  // touched, and what belongs to this thread is put back afterwards.
  const bool stands_in = !oversubscribed_ && p.patience.is_alone();
  if (watch_ != nullptr && watch_->is_asked()) {
    const without_worker as_from_outside;
    watch_->answer();
  }
  const bool looks = watch_ != nullptr && p.id == 0 && !guest;
  const context mine = p.native;
  exceptions_in_flight* const exceptions = p.exceptions;
  const bool is_tidy = pools_.tidy(os::now_ns()) == os::futex_forever_ns;
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
  // Nothing moves any more: the last to fall asleep tells of a failure.
  const bool tell = failure_is_awaited() && nothing_moves();
  const bool stay =
      tell || work_is_visible(p) || leave.load(std::memory_order_seq_cst) != root_task::running;
  if (!stay || !idle_.cancel(p.id, guest)) {
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
  } else if (tell) {
    tell_of_failure(p);
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

void scheduler::ready_appeared(place& p) noexcept {
  if (rule != policy::steal) [[unlikely]]
    return want_caretaker(p);  // whoever is meant has been woken
  // The push before, then the look for sleepers. Partner: the heavy fence in sleep().
  asymmetric_fences::light();
  if (idle_.anyone_parked()) [[unlikely]]
    wake_for_ready(p);
}

void scheduler::wake_for_ready(const place& p) noexcept {
  // And then for one that searches. Partner: pass_on().
  asymmetric_fences::full();
  if (searchers_.load(std::memory_order_seq_cst) == 0) idle_.wake_one(p.id + 1);
}

void scheduler::make_ready(unsigned i, const stack_list& some) noexcept {
  const uninterrupted guard;
  place& here = this_place();
  place& there = *places_[i];
  if (here.owner == this && (rule != policy::steal || &here == &there)) {
    here.put_stacks(some.first);
    return ready_appeared(here);
  }
  const stranger unless_ours(*this);
  // Release: who takes them sees them. Seq_cst: published before we look whether somebody sleeps.
  // Partners: place::take_batches(), work_is_visible().
  some.last->next_free = there.batches.load(std::memory_order_relaxed);
  while (!there.batches.compare_exchange_weak(
      some.last->next_free, some.first, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  if (here.owner == this) here.events.read_modify_writes.add();
  if (!idle_.anyone_parked() || idle_.wake(i)) return;
  if (rule != policy::steal) return want_caretaker(there);
  // It runs something, perhaps for long, and whoever sleeps may take it as well. Partner:
  // pass_on().
  if (!idle_.is_coming(i) && searchers_.load(std::memory_order_seq_cst) == 0) idle_.wake_one(i + 1);
}

// The searcher will come by, or who is on its way. tend() was a full fence. Partner: pass_on().
bool scheduler::has_to_wake(const place& p) const noexcept {
  return searchers_.load(std::memory_order_seq_cst) == 0 && !idle_.is_coming(p.woke);
}

void scheduler::wake_for(place& p) noexcept {
  if (const int i = idle_.wake_one(p.id + 1); i >= 0) p.woke = static_cast<unsigned>(i);
}

void scheduler::work_appeared(place& p) noexcept {
  if (idle_.anyone_parked() && has_to_wake(p)) wake_for(p);
  // Others sleep on. We remember them ourselves: a thief's request may come just too late for a
  // push that the thief does not see yet either.
  if (idle_.anyone_parked()) p.deque.remind();
  if (const visit n(*this); n && n->hungry->load(std::memory_order_seq_cst)) n->feed(p);
}

void scheduler::look_for_sleepers(place& p) noexcept {
  if (!idle_.anyone_parked()) return p.deque.forget_reminder();
  if (!has_to_wake(p) || !p.deque.share()) return;
  p.events.shares.add();
  wake_for(p);
}

void scheduler::tell_idle_waiters() noexcept {
  if (idle_waiters_.load(std::memory_order_seq_cst) == 0) return;
  idle_epoch_.fetch_add(1, std::memory_order_release);
  os::futex_wake(idle_epoch_, INT32_MAX);
}

}  // namespace strata::detail

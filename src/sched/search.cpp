// SPDX-License-Identifier: Apache-2.0
// An idle worker: searches for a while, politely, then sleeps.
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sched/lone_watch.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

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
      if (!victim->overflow.empty() && take_overflow(*victim)) return true;
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

  // What the victim comes to when its deque is empty.
  bool take_overflow(place& victim) {
    std::array<task*, most_at_once> taken;
    const std::size_t n = victim.overflow.take_half(taken.data(), taken.size());
    p.events.read_modify_writes.add(2);
    for (std::size_t i = 0; i < n; ++i) p.push(taken[i]);
    p.events.steals.add(n);
    return n != 0;
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
    if (!gave_way && now - began > p.idle_spin.ticks_alone()) {
      gave_way = true;
      sched_yield();
      const std::uint64_t before = std::exchange(now, os::ticks());
      if (now - before > away_ticks_) p.idle_spin.others_wait();
    }
    bool give_up =
        now - began > p.idle_spin.ticks() || (round >= rounds_for_all && last_is_awaited_asleep());
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
        // The dispatcher takes it.
        if (!p.ready.empty() || p.deque.maybe_work()) break;
        due = true;
        continue;
      }
    }
    if (give_up && !look.raced) {
      if (searching) {
        searchers_.fetch_sub(1, std::memory_order_seq_cst);
        searching = false;
      }
      if (polling) neighbours->end_polling();
      polling = false;
      fall_asleep(p, leave, guest, neighbours);
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
  if (searched) p.idle_spin.was_idle_for(now - began);
  // Those who brought work while we searched left it to us, and those who shared one task may have
  // more and never push again.
  if (!slept) pass_on(p);
  if (p.distributes) p.looks_for_work.store(false, std::memory_order_relaxed);
  p.time.enter(bucket::work);
  return found;
}

// Who has searched in vain.
void scheduler::fall_asleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest,
                            visit& neighbours) {
  p.time.rename(bucket::steal_wait);
  if (neighbours) {
    neighbours->worker_sleeps();
    neighbours->want_work();
    neighbours.end();
  }
  // Asleep it is known to be idle, and a guest may take its place.
  p.looks_for_work.store(false, std::memory_order_relaxed);
  sleep(p, leave, guest);
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
    if (victim->deque.maybe_work() || !victim->overflow.empty()) return true;
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

}  // namespace strata::detail

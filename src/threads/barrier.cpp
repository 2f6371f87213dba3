// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/stack_list.hpp"
#include "strata/detail/barrier_core.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/use_check.hpp"

namespace strata::detail {

namespace {
// For the i-th time, while another thread is at some instructions that it may be kept from.
void give_way(int& i) noexcept {
  constexpr int spins_max = 100;
  i++ < spins_max ? os::spin_pause() : std::this_thread::yield();
}
}  // namespace

// Those who wait on one worker. Written by whoever runs on that worker, until the last of the
// phase, on any worker, takes them: ordered by `word_`.
class barrier_core::lists {
 public:
  std::vector<listed_stacks> of_worker;

  explicit lists(scheduler* s)
      : of_worker(s->workers()),
        home_(s),
        home_began_at_(s->began_at()),
        gate_(s->gate),
        woken_(s->workers()) {}

  // Whether their workers are those of `s`. It may have ended, and another be at its address.
  [[nodiscard]] bool are_of(const scheduler* s) const noexcept {
    return s == home_ && s->began_at() == home_began_at_;
  }
  // Whoever is in them goes no further.
  [[nodiscard]] bool are_given_up() const noexcept { return gate_->is_closed(); }

  // By the last of a phase, which then wakes them, and needs no memory for that.
  void take_all() noexcept {
    // Another may still be waking those of an earlier phase, in which it was not alone to arrive
    // for them. Acquire: it has done with what we write. Partner: wake_all().
    for (int i = 0; (state_.fetch_or(waking, std::memory_order_acquire) & waking) != 0;)
      give_way(i);
    is_any_woken_ = false;
    is_foreign_ = !are_of(this_worker().owner);
    if (is_foreign_ && !gate_->try_enter()) return;
    for (std::size_t i = 0; i < of_worker.size(); ++i) {
      woken_[i] = std::exchange(of_worker[i], listed_stacks{});
      is_any_woken_ = is_any_woken_ || !woken_[i].free.empty() || !woken_[i].pinned.empty();
    }
    if (is_foreign_ && !is_any_woken_) gate_->leave();
  }
  // As soon as one goes on, the barrier may end.
  void wake_all() noexcept {
    if (is_any_woken_) {  // else it may have ended
      home_->make_all_ready(woken_);
      if (is_foreign_) gate_->leave();
    }
    // Release: for who ends it or wakes the next. Partners: take_all(), end().
    if ((state_.fetch_and(~waking, std::memory_order_acq_rel) & ended) != 0) delete this;
  }
  void end() noexcept {
    if ((state_.fetch_or(ended, std::memory_order_acq_rel) & waking) == 0) delete this;
  }

 private:
  static constexpr std::uint32_t waking = 1, ended = 2;

  scheduler* const home_;
  const std::uint64_t home_began_at_;
  const std::shared_ptr<home_gate<>> gate_;  // of home, which may end before us
  std::vector<listed_stacks> woken_;
  bool is_any_woken_ = false;
  bool is_foreign_ = false;  // who wakes them is none of home's workers
  std::atomic<std::uint32_t> state_{0};
};

struct barrier_core::arrival {
  barrier_core* at;
  bool last = false;
};

void barrier_core::refuse_count() {
  throw std::system_error(std::make_error_code(std::errc::invalid_argument), "strata::barrier");
}

void barrier_core::make_lists() {
  if (scheduler* const s = this_worker().owner; s != nullptr) lists_ = new lists(s);
}

barrier_core::~barrier_core() {
  if constexpr (uses_are_checked) {
    bool is_awaited = false;
    if (lists_ != nullptr && !lists_->are_given_up()) {
      for (const auto& l : lists_->of_worker)
        is_awaited = is_awaited || !l.free.empty() || !l.pinned.empty();
    }
    check_use(!is_awaited, "barrier", this, "is destroyed while somebody waits for it",
              "join those who use it first");
    check_end("barrier", this, false, &word_);
  }
  if (lists_ != nullptr) lists_->end();
}

barrier_word<>::arrival barrier_core::count_arrivals(std::ptrdiff_t n) noexcept {
  const barrier_word<>::arrival a = word_.arrive(n);
  check_use(n > 0 && n <= a.missing, "barrier", this, "has more arrivals than its phase expects",
            "make it for as many as arrive");
  return a;
}

void barrier_core::end_phase() noexcept {
  complete_(argument_);
  const void* const address = &word_;
  // The lists of this phase: as soon as somebody goes on, the next one can begin.
  lists* const of_this_phase = lists_;
  if (of_this_phase != nullptr) of_this_phase->take_all();
  word_.begin_next();
  if (of_this_phase != nullptr) of_this_phase->wake_all();
  // Those who came from outside, or waited for an arrival made earlier.
  unpark(address, UINT32_MAX);
}

// Off its stack: listed first, counted then, because from then on the last may continue it.
bool barrier_core::commit(stack& s, void* argument) {
  auto& a = *static_cast<arrival*>(argument);
  barrier_core& b = *a.at;
  auto& here = b.lists_->of_worker[this_worker().id];
  stack_list& waiting = s.pinned_to == nullptr ? here.free : here.pinned;
  stack* const before_us = waiting.last;
  waiting.append(s);
  s.waits_for = "barrier";
  s.waits_at = &b;
  if (!b.count_arrivals(1).is_last) return true;
  waiting.remove_last(before_us);
  a.last = true;
  return false;
}

bool barrier_core::arrive_and_wait() {
  const uninterrupted guard;
  worker& w = this_worker();
  if (lists_ == nullptr || !lists_->are_of(w.owner)) {
    const barrier_word<>::arrival a = count_arrivals(1);
    if (a.is_last)
      end_phase();
    else
      wait(a.phase);
    return a.is_last;
  }
  arrival a{this};
  suspend(&commit, &a);
  if (a.last) end_phase();
  return a.last;
}

barrier_core::phase_token barrier_core::arrive(std::ptrdiff_t n) {
  const uninterrupted guard;
  const barrier_word<>::arrival a = count_arrivals(n);
  if (a.is_last) end_phase();
  return a.phase;
}

barrier_core::attempt barrier_core::try_arrive(std::ptrdiff_t n) {
  const uninterrupted guard;
  barrier_word<>::arrival a;
  return tell(word_.try_arrive(n, a), a);
}

barrier_core::attempt barrier_core::tell(bool has_arrived,
                                         const barrier_word<>::arrival& a) noexcept {
  if (has_arrived && a.is_last) end_phase();
  return {.phase = a.phase,
          .missing = a.missing,
          .has_arrived = static_cast<std::uint8_t>(has_arrived)};
}

struct barrier_core::phase_question {
  const barrier_word<>* word;
  phase_token seen;
};

bool barrier_core::is_in_phase(void* argument) {
  const auto& q = *static_cast<phase_question*>(argument);
  return q.word->phase() == q.seen;
}

bool barrier_core::wait(phase_token phase, unparked (*wait_once)(const parking&),
                        std::int64_t deadline_ns) {
  phase_question question{&word_, phase};
  while (is_in_phase(&question)) {
    const unparked how = wait_once({.what = "barrier",
                                    .address = &word_,
                                    .still = &is_in_phase,
                                    .argument = &question,
                                    .deadline_ns = deadline_ns});
    if (how == unparked::timed_out) return !is_in_phase(&question);
  }
  return true;
}

void barrier_core::arrive_and_drop() {
  word_.drop_one();
  (void)arrive(1);
}

barrier_core::attempt barrier_core::try_arrive_and_drop() {
  const uninterrupted guard;
  barrier_word<>::arrival a;
  int i = 0;
  return tell(word_.try_drop(a, [&] { give_way(i); }), a);
}

}  // namespace strata::detail

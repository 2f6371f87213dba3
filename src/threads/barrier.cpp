// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <system_error>
#include <vector>

#include "sched/scheduler.hpp"
#include "strata/detail/barrier_core.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/use_check.hpp"

namespace strata::detail {

// Those who wait on one worker. Written by whoever runs on that worker, until the last of the
// phase, on any worker, takes them: ordered by `left_`.
struct barrier_core::lists {
  struct alignas(destructive_bytes) list {
    std::vector<stack*> waiting;
    std::vector<stack*> pinned;  // may not be given away as part of a list
  };
  scheduler* home;
  std::vector<list> of_worker;
  lists(scheduler* s, unsigned workers) : home(s), of_worker(workers) {}
};

struct barrier_core::arrival {
  barrier_core* at;
  phase_token phase;
  bool last = false;
};

void barrier_core::refuse_count() {
  throw std::system_error(std::make_error_code(std::errc::invalid_argument), "strata::barrier");
}

void barrier_core::make_lists() {
  if (scheduler* const s = this_worker().owner; s != nullptr) lists_ = new lists(s, s->workers());
}

barrier_core::~barrier_core() {
  if constexpr (uses_are_checked) {
    bool is_awaited = false;
    if (lists_ != nullptr) {
      for (const auto& l : lists_->of_worker)
        is_awaited = is_awaited || !l.waiting.empty() || !l.pinned.empty();
    }
    check_use(!is_awaited, "barrier", this, "is destroyed while somebody waits for it",
              "join those who use it first");
    check_end("barrier", this, false, &phase_);
  }
  delete lists_;
}

// `before`: how many were still to come.
void barrier_core::check_arrivals(std::int64_t n, std::int64_t before) const noexcept {
  check_use(n > 0 && n <= before, "barrier", this, "has more arrivals than its phase expects",
            "make it for as many as arrive");
}

void barrier_core::end_phase() noexcept {
  complete_(argument_);
  left_.store(expected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const void* const address = &phase_;
  // The lists of this phase: as soon as somebody goes on, the next one can begin.
  std::vector<std::vector<stack*>> all;
  std::vector<stack*> pinned;
  scheduler* home = nullptr;
  if (lists_ != nullptr) {
    home = lists_->home;
    all.reserve(lists_->of_worker.size());
    for (auto& l : lists_->of_worker) {
      all.push_back(std::exchange(l.waiting, {}));
      // Of the next phase, probably as many.
      l.waiting.reserve(all.back().size());
      pinned.insert(pinned.end(), l.pinned.begin(), l.pinned.end());
      l.pinned.clear();
    }
  }
  // Release: everything done before the barrier is visible after it.
  phase_.fetch_add(1, std::memory_order_release);
  if (home != nullptr) home->make_all_ready(std::move(all));
  for (stack* const s : pinned) detail::make_ready(*s);
  // Those who came from outside, or waited for an arrival made earlier.
  unpark(address, UINT32_MAX);
}

// Off its stack: listed first, counted then, because from then on the last may continue it.
bool barrier_core::commit(stack& s, void* argument) {
  auto& a = *static_cast<arrival*>(argument);
  barrier_core& b = *a.at;
  auto& here = b.lists_->of_worker[this_worker().id];
  auto& waiting = s.pinned_to == nullptr ? here.waiting : here.pinned;
  waiting.push_back(&s);
  s.waits_for = "barrier";
  s.waits_at = &b;
  // Acquire-release: the last sees all lists, and what everybody did.
  const std::int64_t before = b.left_.fetch_sub(1, std::memory_order_acq_rel);
  b.check_arrivals(1, before);
  if (before != 1) return true;
  waiting.pop_back();
  a.last = true;
  return false;
}

bool barrier_core::arrive_and_wait() {
  const uninterrupted guard;
  worker& w = this_worker();
  if (lists_ == nullptr || w.owner != lists_->home) {
    const phase_token now = phase_.load(std::memory_order_relaxed);
    const std::int64_t before = left_.fetch_sub(1, std::memory_order_acq_rel);
    check_arrivals(1, before);
    if (before == 1) {
      end_phase();
      return true;
    }
    wait(now);
    return false;
  }
  arrival a{this, 0};
  suspend(&commit, &a);
  if (a.last) end_phase();
  return a.last;
}

barrier_core::phase_token barrier_core::arrive(std::ptrdiff_t n) {
  const uninterrupted guard;
  const phase_token now = phase_.load(std::memory_order_relaxed);
  const std::int64_t before = left_.fetch_sub(n, std::memory_order_acq_rel);
  check_arrivals(n, before);
  if (before == n) end_phase();
  return now;
}

namespace {
struct phase_question {
  std::atomic<std::uint32_t>* phase;
  std::uint32_t seen;
};
}  // namespace

bool barrier_core::is_in_phase(void* argument) {
  const auto& q = *static_cast<phase_question*>(argument);
  return q.phase->load(std::memory_order_acquire) == q.seen;
}

void barrier_core::wait(phase_token phase, unparked (*wait_once)(const parking&)) {
  phase_question question{&phase_, phase};
  while (is_in_phase(&question)) {
    wait_once(
        {.what = "barrier", .address = &phase_, .still = &is_in_phase, .argument = &question});
  }
}

void barrier_core::arrive_and_drop() {
  expected_.fetch_sub(1, std::memory_order_relaxed);
  (void)arrive(1);
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
// The scheduler as other nodes see it.
#include <algorithm>

#include "sched/scheduler.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

void scheduler::join(neighbourhood& n, remote_nodes& others, std::uint16_t node,
                     std::uint16_t nodes) {
  for (auto& p : places_) {
    p->node = node;
    p->nodes.store(nodes, std::memory_order_relaxed);
    p->others = &others;
    p->looks = n.workers_look;
  }
  around_.open(n);  // all workers sleep now, or are about to
}

void scheduler::count_frames_of(const worker* network_worker) {
  const std::lock_guard lock(network_worker_mutex_);
  network_worker_ = network_worker;
}

void scheduler::set_nodes(std::uint16_t nodes) noexcept {
  for (auto& p : places_) p->nodes.store(nodes, std::memory_order_relaxed);
}

std::int64_t scheduler::held() {
  std::int64_t held = held_stacks();
  for (const auto& p : places_) held += p->frames.live();
  // A signal that comes late may have ended some of them, and others live: as many may be taken for
  // dead then.
  return held - std::min(dead_frames_.load(std::memory_order_relaxed), count_frames());
}

std::int64_t scheduler::held_stacks() {
  std::int64_t held = 0;
  for (const auto& p : places_) held -= p->has_spare() ? 1 : 0;
  for (const stack_pool* const pool : all_stacks())
    held += static_cast<std::int64_t>(pool->capacity() - pool->left());
  return held;
}

void scheduler::leave() {
  if (neighbourhood* const around = around_.close()) around->dismiss_stand_in();
  around_.wait_until_alone();
  for (auto& p : places_) {
    p->nodes.store(1, std::memory_order_relaxed);
    p->others = nullptr;
    p->looks = &place::nobody_to_look_for;
  }
}

namespace {

task* take_oldest_if(worker& w, bool (*wanted)(const task* marked)) {
  task* t = nullptr;
  while (w.deque.steal_if(t, wanted) == steal_outcome::lost_race) {
  }
  return unmarked(t);
}

}  // namespace

task* scheduler::take_travelling_from(worker& w) { return take_oldest_if(w, &can_travel); }
task* scheduler::take_shelvable_from(worker& w) { return take_oldest_if(w, &can_be_shelved); }

task* scheduler::take_travelling_of(place& p) {
  task* const t = take_travelling_from(p);
  // The next one to ask should find something at once.
  if (t != nullptr) p.deque.ask();
  return t;
}

task* scheduler::take_shared() {
  for (auto& p : places_) {
    if (task* const t = take_travelling_of(*p)) return t;
  }
  return nullptr;
}

task* scheduler::take_travelling() {
  if (task* const t = take_shared()) return t;
  for (auto& p : places_) {
    if (p->deque.has_shared() || !p->deque.maybe_work() || !p->deque.force()) continue;
    if (task* const t = take_travelling_of(*p)) return t;
  }
  return nullptr;
}

void scheduler::ask_everybody_soon() noexcept {
  for (auto& p : places_) p->deque.ask();
}

void scheduler::ask_everybody() noexcept {
  ask_everybody_soon();
  // A push either sees the request or is seen. Partner: split_deque::push().
  asymmetric_fences::heavy();
}

std::uint32_t scheduler::load() const noexcept {
  std::size_t sum = injected_.size();
  for (const auto& p : places_) sum += p->deque.approximate_size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(sum, UINT32_MAX));
}

bool scheduler::is_idle(waits counted) const noexcept {
  // And nothing on the way in: nobody is left who could produce work. Nor was anybody while we
  // looked, who may have taken the last of it out of our sight.
  const std::uint64_t before = idle_.tally();
  if (counted == waits::in_calls_too && calls_in_progress.load(std::memory_order_seq_cst) != 0)
    return false;
  if (counted != waits::none && !deadlines.empty()) return false;
  return !injected_.has_any() && nothing_moves() && idle_.tally() == before;
}

}  // namespace strata::detail

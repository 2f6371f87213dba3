// SPDX-License-Identifier: Apache-2.0
// What one of those who sleep sees to meanwhile, so that no thread is there for it: the memory of
// stacks and frames that nobody uses; and, under the policies rotator and locked, workers that
// stand still in a system call or in something long, though others wait there. By themselves those
// policies take nothing from anybody. Who neither begins nor continues anything from one look to
// the next cannot give anything away either; what waits there is taken by the next worker that has
// nothing to do.
//
// It sleeps with a limit as long as there is something to see to, and then for ever: a program that
// does nothing costs nothing.
#include <algorithm>

#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/without_worker.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

// Far above the time for which who runs threads that block and wake each other does nothing else.
static constexpr std::int64_t look_every_ns = 4'000'000;

bool scheduler::somebody_may_stand_still() const noexcept {
  // Without these fences nobody can take from one that stands still.
  return rule != policy::steal && places_.size() > 1 && asymmetric_fences::available();
}

// Others would have to take it away.
bool scheduler::something_waits_at(const place& p) const noexcept {
  if (idle_.is_parked(p.id)) return false;
  return !p.ready.empty() || p.has_batches() || (rule == policy::rotator && waived_for(p));
}

bool scheduler::something_waits_but_at(const place* here) const noexcept {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const auto& p) { return p.get() != here && something_waits_at(*p); });
}

void scheduler::want_caretaker(const place& p) noexcept {
  if (!somebody_may_stand_still()) return;
  // Made ready, then looked for a caretaker. Partner: the heavy fences below and in sleep().
  asymmetric_fences::light();
  if (!idle_.anyone_parked() || has_caretaker_.load(std::memory_order_relaxed)) return;
  idle_.wake_one(p.id + 1);  // and it will be, when it sleeps again
}

void scheduler::left_behind_the_first(const place& p) noexcept {
  if (p.leaves_others_behind()) want_caretaker(p);
}

std::int64_t scheduler::look_who_stands_still(const place& p) noexcept {
  const std::int64_t now_ns = os::now_ns();
  if (now_ns - looked_at_ns_ < look_every_ns) return looked_at_ns_ + look_every_ns - now_ns;
  looked_at_ns_ = now_ns;
  bool stay = false;
  bool wake = false;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    place& other = *places_[i];
    const last_look now{steps_of(other), something_waits_at(other)};
    const last_look before = std::exchange(last_looks_[i], now);
    // Who moves may soon stand still, and would have to wake somebody first.
    stay = stay || now.waits || now.steps != before.steps;
    if (!now.waits || !before.waits || now.steps != before.steps) continue;
    other.stands_still.store(true, std::memory_order_relaxed);
    wake = true;
  }
  if (wake) idle_.wake_one(p.id);
  return stay ? look_every_ns : os::futex_forever_ns;
}

std::int64_t scheduler::tidy() noexcept {
  const std::int64_t now_ns = os::now_ns();
  return sooner(pools_.tidy(now_ns), depot.tidy(now_ns));
}

std::int64_t scheduler::take_care(const place& p, bool is_tidy, bool& cares) noexcept {
  const without_worker as_from_outside;
  for (;;) {
    if (!cares) {
      if (is_tidy && !(somebody_may_stand_still() && !all_sleep())) return os::futex_forever_ns;
      // Acquire: what the last one has seen. Partners: the release below and in give_up_care().
      // Release, to a caretaker that we leave it to: what we have given back.
      if (has_caretaker_.exchange(true, std::memory_order_acq_rel)) return os::futex_forever_ns;
      cares = true;
    }
    std::int64_t next_ns = tidy();
    if (somebody_may_stand_still()) next_ns = sooner(next_ns, look_who_stands_still(p));
    if (next_ns != os::futex_forever_ns) return next_ns;
    cares = false;
    // Acquire: what those have given back who have left it to us. Partner: the exchange above.
    has_caretaker_.exchange(false, std::memory_order_acq_rel);
    is_tidy = memory_is_tidy();
    if (!is_tidy) continue;
    if (!somebody_may_stand_still()) return os::futex_forever_ns;
    // Given up, then looked. Partner: want_caretaker().
    asymmetric_fences::heavy();
    if (!something_waits_but_at(nullptr)) return os::futex_forever_ns;
  }
}

void scheduler::give_up_care(const place& p) noexcept {
  has_caretaker_.store(false, std::memory_order_release);
  if (!somebody_may_stand_still()) return;
  asymmetric_fences::light();  // not before it is given up
  if (!idle_.anyone_parked()) return;
  // As above. Of what waits here we say so when we take it: left_behind_the_first().
  asymmetric_fences::heavy();
  if (something_waits_but_at(&p)) idle_.wake_one(p.id + 1);
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/profile.hpp"

#include <algorithm>

#include "os/clock.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {
namespace {

void stop_clock(strand& s, std::uint64_t now) noexcept {
  const std::uint64_t ran = now > s.since ? now - s.since : 0;
  s.work += ran;
  s.span += ran;
}

}  // namespace

void strand_begin(strand& s) noexcept {
  worker& w = this_worker();
  const std::uint64_t now = os::ticks();
  s.parent = w.current_strand;
  // A branch that runs as a direct call stops its parent's clock; on a stack of its own it has no
  // parent to stop.
  if (s.parent != nullptr) stop_clock(*s.parent, now);
  w.current_strand = &s;
  s.since = os::ticks();
}

void strand_end(strand& s) noexcept {
  const std::uint64_t now = os::ticks();
  worker& w = this_worker();
  stop_clock(s, now);
  w.current_strand = s.parent;
  if (s.parent != nullptr) s.parent->since = os::ticks();
}

void strands_join(const strand& left, const strand& right) noexcept {
  strand* s = this_worker().current_strand;
  if (s == nullptr) return;
  s->work += left.work + right.work;
  s->span += std::max(left.span, right.span);
}

void strand_pause() noexcept {
  worker& w = this_worker();
  stop_clock(*w.current_strand, os::ticks());
  w.current_strand = nullptr;
}

void strand_resume(strand& s) noexcept {
  this_worker().current_strand = &s;
  s.since = os::ticks();
}

}  // namespace strata::detail

// SPDX-License-Identifier: Apache-2.0
#include "net/reliable.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::net {
namespace {

// How far b lies after a; sequence numbers wrap.
std::int32_t distance(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(b - a); }

}  // namespace

reliable_channel::reliable_channel(const settings& s, hooks h)
    : settings_(s), hooks_(std::move(h)) {}

void reliable_channel::send(std::vector<std::byte> message, std::int64_t now_ns) {
  if (in_flight_.size() >= settings_.window_messages) {
    waiting_.push_back(std::move(message));
    return;
  }
  in_flight_.push_back({next_out_++, std::move(message), now_ns, 0});
  due_ns_ = std::min(due_ns_, now_ns + timeout_after(0));
  transmit(in_flight_.back(), now_ns);
}

void reliable_channel::transmit(unacknowledged& m, std::int64_t now_ns) {
  m.sent_at = now_ns;
  hooks_.transmit({m.sequence, next_in_, true, m.message});
}

std::int64_t reliable_channel::timeout_after(unsigned repeats) const {
  const std::int64_t base =
      smoothed_ns_ == 0 ? settings_.first_timeout_ns
                        : std::max(smoothed_ns_ + 4 * variation_ns_, settings_.least_timeout_ns);
  const unsigned doublings = std::min(repeats, 16U);
  return std::min(base << doublings, settings_.most_timeout_ns);
}

// Earlier messages have been repeated at least as often as later ones, and of two that have been so
// equally often the earlier one was sent no later. So of each run of those a few in front are due.
std::int64_t reliable_channel::on_time(std::int64_t now_ns) {
  if (now_ns < due_ns_) return due_ns_;
  std::int64_t next = INT64_MAX;
  for (auto run = in_flight_.begin(); run != in_flight_.end();) {
    const unsigned repeats = run->repeats;
    const auto end = std::partition_point(
        run, in_flight_.end(), [&](const unacknowledged& m) { return m.repeats == repeats; });
    STRATA_DCHECK(end == in_flight_.end() || end->repeats < repeats, repeats);
    const std::int64_t timeout = timeout_after(repeats);
    for (; run != end && run->sent_at + timeout <= now_ns; ++run) {
      ++run->repeats;
      transmit(*run, now_ns);
      next = std::min(next, now_ns + timeout_after(run->repeats));
    }
    if (run != end) next = std::min(next, run->sent_at + timeout);
    run = end;
  }
  due_ns_ = next;
  return next;
}

void reliable_channel::on_packet(const packet& p, std::int64_t now_ns) {
  acknowledge(p.acknowledged, now_ns);
  if (!p.carries_message) return;
  const std::int32_t ahead = distance(next_in_, p.sequence);
  // What is too far ahead comes again when there is room.
  if (ahead >= static_cast<std::int32_t>(settings_.window_messages)) return;
  if (ahead > 0) early_.try_emplace(p.sequence, p.payload.begin(), p.payload.end());
  if (ahead == 0) {
    ++next_in_;
    hooks_.deliver(p.payload);
    for (auto first = early_.find(next_in_); first != early_.end(); first = early_.find(next_in_)) {
      const std::vector<std::byte> message = std::move(first->second);
      early_.erase(first);
      ++next_in_;
      hooks_.deliver(message);
    }
  }
  // Also for what came twice: the acknowledgement may have been lost.
  hooks_.transmit({0, next_in_, false, {}});
}

void reliable_channel::acknowledge(std::uint32_t below, std::int64_t now_ns) {
  // A peer cannot acknowledge what was never sent.
  if (distance(next_out_, below) > 0) return;
  std::int64_t sent_at = 0;
  bool says_something = false;
  bool repeated = false;
  while (!in_flight_.empty() && distance(in_flight_.front().sequence, below) > 0) {
    sent_at = in_flight_.front().sent_at;
    repeated |= in_flight_.front().repeats != 0;
    says_something = true;
    in_flight_.pop_front();
  }
  // The time of a repeated message says nothing: which of them was answered? (Karn's rule.) Nor
  // does that of those behind it, which waited for it there.
  if (says_something && !repeated) measured(now_ns - sent_at);
  if (says_something) due_ns_ = unknown;
  while (!waiting_.empty() && in_flight_.size() < settings_.window_messages) {
    in_flight_.push_back({next_out_++, std::move(waiting_.front()), now_ns, 0});
    waiting_.pop_front();
    transmit(in_flight_.back(), now_ns);
  }
}

void reliable_channel::measured(std::int64_t round_trip_ns) {
  if (smoothed_ns_ == 0) {
    smoothed_ns_ = std::max<std::int64_t>(round_trip_ns, 1);
    variation_ns_ = round_trip_ns / 2;
    return;
  }
  variation_ns_ = (3 * variation_ns_ + std::abs(smoothed_ns_ - round_trip_ns)) / 4;
  smoothed_ns_ = (7 * smoothed_ns_ + round_trip_ns) / 8;
}

}  // namespace strata::net

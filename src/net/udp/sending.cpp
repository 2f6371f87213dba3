// SPDX-License-Identifier: Apache-2.0
#include "net/udp/sending.hpp"

#include <algorithm>

#include "strata/detail/check.hpp"

namespace strata::net::udp {

namespace {

// RFC 9002, sections 6.1 and 6.2.
constexpr std::uint64_t later_packets = 3;
constexpr std::int64_t granularity_ns = 100'000;
constexpr unsigned probes_max = 2;
// A peer that did not look for a while must not make us patient for minutes.
constexpr std::int64_t base_timeout_ns_max = 250'000'000;
constexpr unsigned doublings_max = 10;
// From so many timeouts in a row on nothing comes through.
constexpr unsigned silent_timeouts = 3;

}  // namespace

sending::sending(const settings& s)
    : settings_(s), ring_(s.buffer_bytes), congestion_(s.packet_bytes) {}

// The peer's window keeps back what is left, and nothing is under way that it will answer.
bool sending::is_blocked() const noexcept {
  return outstanding_ == 0 && !ping_wanted_ && repeats_.empty() && next_ < end() &&
         next_ >= peer_window_;
}

bool sending::next(std::size_t data_bytes_max, piece& p) {
  p = {};
  const bool may_send = probes_wanted_ > 0 || in_flight_bytes_ == 0 ||
                        in_flight_bytes_ + settings_.packet_bytes <= congestion_.window_bytes();
  if (!may_send) return false;
  const auto take = [&](std::uint64_t from, std::uint64_t to) {
    const std::uint64_t bytes = std::min<std::uint64_t>(to - from, data_bytes_max);
    p.offset = from;
    p.data = ring_.data().subspan(static_cast<std::size_t>(from - arrived_below_),
                                  static_cast<std::size_t>(bytes));
    p.wants_answer = true;
    return from + bytes;
  };
  while (!repeats_.empty()) {
    const auto [from, to] = *repeats_.all().begin();
    // It may have arrived after all.
    if (to <= arrived_below_ || arrived_.contains(from)) {
      const auto there = arrived_.all().upper_bound(from);
      repeats_.remove_below(to <= arrived_below_ ? to : std::min(to, std::prev(there)->second));
      continue;
    }
    repeats_.remove_below(take(std::max(from, arrived_below_), to));
    return true;
  }
  const std::uint64_t allowed = std::min(end(), peer_window_);
  if (next_ < allowed) {
    next_ = take(next_, allowed);
    return true;
  }
  p.wants_answer = ping_wanted_ || probes_wanted_ > 0;
  return p.wants_answer;
}

void sending::sent(const piece& p, std::size_t bytes, std::int64_t now_ns) {
  if (!p.wants_answer) {
    // Nobody will acknowledge it, and nobody waits for it.
    if (flight_.empty()) {
      ++base_;
    } else {
      flight_.push_back({0, 0, 0, now_ns});
    }
    return;
  }
  flight_.push_back({p.offset, static_cast<std::uint32_t>(p.data.size()),
                     static_cast<std::uint32_t>(bytes), now_ns});
  if (outstanding_++ == 0) progress_at_ = now_ns;
  in_flight_bytes_ += bytes;
  sent_at_ = now_ns;
  ping_wanted_ = false;
  if (probes_wanted_ > 0) {
    --probes_wanted_;
    ++probes_sent_;
  }
}

void sending::settle(sent_packet& p) noexcept {
  in_flight_bytes_ -= p.bytes;
  --outstanding_;
  p.bytes = 0;
}

void sending::arrived(std::uint64_t from, std::uint64_t to) {
  arrived_.add(std::max(from, arrived_below_), to);
  if (arrived_.empty() || arrived_.all().begin()->first != arrived_below_) return;
  const std::uint64_t below = arrived_.all().begin()->second;
  ring_.consume(static_cast<std::size_t>(below - arrived_below_));
  arrived_below_ = below;
  arrived_.remove_below(below);
}

bool sending::on_acknowledgement(const acknowledgement& a, std::int64_t now_ns) {
  if (a.count != 0 && a.ranges[0].to > next_number()) return false;
  peer_window_ = std::max(peer_window_, a.window);
  bool is_news = false;
  const std::size_t in_flight_before = in_flight_bytes_;
  for (std::size_t i = 0; i < a.count; ++i) {
    if (a.ranges[i].to <= base_) break;
    for (std::uint64_t n = std::max(a.ranges[i].from, base_); n < a.ranges[i].to; ++n) {
      sent_packet& p = flight_[static_cast<std::size_t>(n - base_)];
      if (p.bytes == 0) continue;
      is_news = true;
      if (n + 1 == a.ranges[0].to) {
        round_trip_.measured(now_ns - p.sent_at, std::int64_t{a.delay_us} * 1000);
      }
      congestion_.on_acknowledged(p.bytes, p.sent_at, in_flight_before);
      settle(p);
      if (p.data_bytes != 0) arrived(p.offset, p.offset + p.data_bytes);
    }
  }
  if (!is_news) return true;
  acknowledged_to_ = std::max(acknowledged_to_, a.ranges[0].to);
  timeouts_ = 0;
  probes_wanted_ = 0;
  progress_at_ = now_ns;
  find_lost(now_ns);
  forget_settled();
  return true;
}

void sending::find_lost(std::int64_t now_ns) {
  loss_due_ns_ = never_ns;
  // Longer than any timeout only where somebody did not look for a while; meanwhile the timeout is
  // not asked.
  const std::int64_t patience_ns =
      std::clamp(std::max(round_trip_.smoothed_ns(), round_trip_.latest_ns()) / 8 * 9,
                 granularity_ns, settings_.most_timeout_ns);
  std::size_t lost = 0;
  std::int64_t last_sent_at = 0;
  for (std::uint64_t n = base_; n < acknowledged_to_; ++n) {
    sent_packet& p = flight_[static_cast<std::size_t>(n - base_)];
    if (p.bytes == 0) continue;
    if (acknowledged_to_ - n <= later_packets && p.sent_at + patience_ns > now_ns) {
      loss_due_ns_ = std::min(loss_due_ns_, p.sent_at + patience_ns);
      continue;
    }
    ++lost;
    last_sent_at = p.sent_at;
    settle(p);
    repeat(p);
  }
  if (lost == 0) return;
  packets_lost_ += lost;
  congestion_.on_lost(lost, last_sent_at, now_ns, round_trip_);
}

void sending::repeat(const sent_packet& p) {
  if (p.data_bytes == 0) {
    ping_wanted_ = true;
  } else if (p.offset + p.data_bytes > arrived_below_) {
    repeats_.add(std::max(p.offset, arrived_below_), p.offset + p.data_bytes);
  }
}

void sending::forget_settled() {
  while (!flight_.empty() && flight_.front().bytes == 0) {
    flight_.pop_front();
    ++base_;
  }
}

std::int64_t sending::timeout_ns() const noexcept {
  const std::int64_t base = round_trip_.is_known()
                                ? round_trip_.smoothed_ns() +
                                      std::max(4 * round_trip_.variation_ns(), granularity_ns) +
                                      settings_.peer_delay_ns
                                : settings_.first_timeout_ns;
  return std::min(std::min(base, base_timeout_ns_max) << std::min(timeouts_, doublings_max),
                  settings_.most_timeout_ns);
}

std::int64_t sending::due_ns() const noexcept {
  if (loss_due_ns_ != never_ns) return loss_due_ns_;
  if (outstanding_ != 0) return sent_at_ + timeout_ns();
  // The word that there is room again may have been lost.
  return is_blocked() ? progress_at_ + timeout_ns() : never_ns;
}

void sending::on_time(std::int64_t now_ns) {
  if (due_ns() > now_ns) return;
  if (loss_due_ns_ != never_ns) {
    find_lost(now_ns);
    return forget_settled();
  }
  if (outstanding_ == 0) {
    ping_wanted_ = true;
    return;
  }
  if (++timeouts_ == silent_timeouts) congestion_.on_silence();
  // Those that are sent again stay in flight: the answer to the probe tells what became of them.
  probes_wanted_ = 0;
  for (const sent_packet& p : flight_) {
    if (p.bytes == 0) continue;
    repeat(p);
    if (++probes_wanted_ == probes_max) break;
  }
  sent_at_ = now_ns;  // also where no probe can leave at once
}

}  // namespace strata::net::udp

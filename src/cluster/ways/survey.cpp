// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/survey.hpp"

#include <algorithm>
#include <array>

#include "cluster/ways/link_costs.hpp"

namespace strata::cluster {
namespace {

// Until there may be room again.
constexpr std::int64_t again_ns = 1'000'000;

constexpr std::array<std::byte, survey::piece_bytes> no_meaning{};

}  // namespace

survey::survey(line& out, const std::vector<node_id>& others, std::int64_t now_ns, limits l,
               std::uint32_t first)
    : out_(out), limits_(l), first_(first), began_ns_(now_ns), ended_ns_(now_ns) {
  for (const node_id n : others) {
    waiting_.push_back(all_.size());
    all_.push_back({n});
  }
  begin(step::rounds, now_ns);
}

void survey::begin(step s, std::int64_t now_ns) {
  step_ = s;
  step_began_ns_ = moved_ns_ = now_ns;
  sent_ = answered_ = 0;
}

void survey::end(std::int64_t now_ns) {
  if (!is_done() && step_ == step::stream) end_stream();
  waiting_.clear();
  ended_ns_ = now_ns;
}

std::int64_t survey::patience_ns() const {
  const measured& m = all_[waiting_.front()];
  if (m.turns != 0) return limits_.rounds_ns;
  return std::max(limits_.patience_ns, 2 * m.shortest_ns);
}

bool survey::send(bool piece, std::int64_t now_ns) {
  measured& m = all_[waiting_.front()];
  const std::uint32_t number = next_number();
  const std::span<const std::byte> body = piece ? no_meaning : std::span<const std::byte>{};
  if (!out_.try_post(m.node, kind::ping, std::as_bytes(std::span(&number, 1)), body)) return false;
  pings_.push_back({waiting_.front(), now_ns, piece});
  if (m.asked_ns < 0) m.asked_ns = now_ns;
  moved_ns_ = now_ns;
  ++sent_;
  return true;
}

std::int64_t survey::go_on(std::int64_t now_ns) {
  const std::int64_t limit_ns = began_ns_ + limits_.all_ns;
  std::int64_t next_ns = 0;
  while (!is_done() && next_ns == 0) {
    if (now_ns >= limit_ns) {
      end(now_ns);
      break;
    }
    next_ns = step_ == step::rounds ? go_on_with_rounds(now_ns) : go_on_with_stream(now_ns);
  }
  return is_done() ? INT64_MAX : std::min(next_ns, limit_ns);
}

std::int64_t survey::go_on_with_rounds(std::int64_t now_ns) {
  measured& m = all_[waiting_.front()];
  const bool awaits = sent_ > answered_;
  const std::int64_t until_ns = moved_ns_ + patience_ns();
  const bool is_enough = now_ns >= until_ns || (!awaits && sent_ >= limits_.rounds) ||
                         (answered_ != 0 && now_ns - step_began_ns_ >= limits_.rounds_ns);
  if (m.shortest_ns != 0 && is_enough) {
    // A stream as slow as before would tell nothing new.
    const bool is_new = m.bytes_per_ns == 0 || m.shortest_ns < m.streamed_ns / 2;
    if (!is_new) {
      end_turn(now_ns);
      return 0;
    }
    m.streamed_ns = m.shortest_ns;
    begin(step::stream, now_ns);
    return 0;
  }
  if (now_ns >= until_ns) {
    // Perhaps it has not begun yet.
    waiting_.push_back(waiting_.front());
    waiting_.pop_front();
    begin(step::rounds, now_ns);
    return 0;
  }
  if (awaits) return until_ns;
  return send(false, now_ns) ? moved_ns_ + patience_ns() : std::min(now_ns + again_ns, until_ns);
}

std::int64_t survey::go_on_with_stream(std::int64_t now_ns) {
  const std::int64_t until_ns =
      std::min(step_began_ns_ + limits_.stream_ns, moved_ns_ + patience_ns());
  const bool is_whole = answered_ == limits_.pieces;
  if (is_whole || now_ns >= until_ns) {
    end_stream();
    const bool again = is_whole && all_[waiting_.front()].streams < limits_.streams &&
                       now_ns - step_began_ns_ < limits_.again_ns;
    if (again) {
      begin(step::stream, now_ns);
    } else {
      end_turn(now_ns);
    }
    return 0;
  }
  while (sent_ < limits_.pieces) {
    if (!send(true, now_ns)) return std::min(now_ns + again_ns, until_ns);
  }
  return until_ns;
}

void survey::end_turn(std::int64_t now_ns) {
  const std::size_t whose = waiting_.front();
  measured& m = all_[whose];
  waiting_.pop_front();
  if (m.shortest_ns > limits_.doubtful_ns && ++m.turns < limits_.turns) waiting_.push_back(whose);
  begin(step::rounds, now_ns);
  if (is_done()) end(now_ns);
}

void survey::end_stream() {
  measured& m = all_[waiting_.front()];
  ++m.streams;
  if (answered_ == 0) return;
  // Without the way of the first piece and of the last answer, which are no part of the stream; but
  // no stream is fast because one round trip was slow.
  const std::int64_t took_ns = answered_ns_ - step_began_ns_;
  const std::int64_t carrying_ns =
      std::max({took_ns - m.shortest_ns, took_ns / 8, std::int64_t{1}});
  const double bytes = static_cast<double>(answered_) * piece_bytes;
  m.bytes_per_ns = std::max(m.bytes_per_ns, bytes / static_cast<double>(carrying_ns));
}

bool survey::on_message(node_id from, kind k, reader r, std::int64_t now_ns) {
  if (k != kind::ping && k != kind::pong) return false;
  const auto number = r.take<std::uint32_t>();
  const std::size_t more = r.take_rest().size();
  if (k == kind::pong) {
    if (more != 0) throw malformed("a pong of some length");
    on_pong(from, number, now_ns);
    return true;
  }
  if (more != 0 && more != piece_bytes) throw malformed("a ping of a length that there is not");
  // Who does not read what it asked for gets no answer.
  (void)out_.try_post(from, kind::pong, std::as_bytes(std::span(&number, 1)), {});
  return true;
}

void survey::on_pong(node_id from, std::uint32_t number, std::int64_t now_ns) {
  number -= first_;
  // Modulo 2^32. None is that late but of a survey before this one.
  if (first_ != 0 && static_cast<std::int32_t>(number) < 0) return;
  if (number >= pings_.size() || pings_[number].answered || all_[pings_[number].whose].node != from)
    throw malformed("a pong to what was not asked");
  ping& p = pings_[number];
  p.answered = true;
  measured& m = all_[p.whose];
  const bool has_turn = !is_done() && waiting_.front() == p.whose;
  if (p.is_piece) {
    if (!has_turn || step_ != step::stream || p.at_ns < step_began_ns_) return;  // too late
  } else {
    // That of an earlier turn is a round trip like all others, though perhaps a long one.
    const std::int64_t round_trip_ns = std::max<std::int64_t>(now_ns - p.at_ns, 1);
    m.shortest_ns = m.shortest_ns == 0 ? round_trip_ns : std::min(m.shortest_ns, round_trip_ns);
    if (!has_turn || step_ != step::rounds || p.at_ns < step_began_ns_) return;
  }
  ++answered_;
  moved_ns_ = answered_ns_ = now_ns;
}

launch::measured_link survey::result::over(std::uint16_t network) const noexcept {
  launch::measured_link m{node, network, to_step(latency_ns)};
  if (bytes_per_s != 0) m.bandwidth = to_step(bytes_per_s);
  return m;
}

std::vector<survey::result> survey::results() const {
  std::vector<result> all;
  for (const measured& m : all_) {
    if (m.shortest_ns != 0) {
      all.push_back({m.node, std::max<std::int64_t>(m.shortest_ns / 2, 1),
                     static_cast<std::int64_t>(m.bytes_per_ns * 1e9)});
    } else if (m.asked_ns >= 0) {
      all.push_back({m.node, std::max<std::int64_t>((ended_ns_ - m.asked_ns) / 2, 1), 0});
    }
  }
  return all;
}

}  // namespace strata::cluster

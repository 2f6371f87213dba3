// SPDX-License-Identifier: Apache-2.0
// The survey of one node, played without a network: who answers, when, and with what.
#include "cluster/ways/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

namespace strata::cluster {
namespace {

// Answers so long after it was asked; not at all: never.
struct played : survey::line {
  struct wire {
    std::int64_t round_trip_ns;
    double bytes_per_ns = 1;
  };
  std::map<node_id, wire> wires;
  bool has_room = true;
  std::int64_t now = 0;
  struct answer {
    node_id from;
    std::uint32_t number;
  };
  std::multimap<std::int64_t, answer> answers;  // by when they come
  std::map<node_id, std::int64_t> free_at;
  std::vector<std::pair<node_id, kind>> posted;

  bool try_post(node_id to, kind k, std::span<const std::byte> head,
                std::span<const std::byte> body) override {
    if (!has_room) return false;
    posted.emplace_back(to, k);
    const auto w = wires.find(to);
    if (k != kind::ping || w == wires.end()) return true;
    std::int64_t& free = free_at[to];
    free = std::max(free, now) +
           static_cast<std::int64_t>(static_cast<double>(body.size()) / w->second.bytes_per_ns);
    answers.emplace(free + w->second.round_trip_ns, answer{to, reader(head).take<std::uint32_t>()});
    return true;
  }

  // To the end; returns when that was.
  std::int64_t play(survey& s) {
    std::int64_t next = s.go_on(now);
    for (int steps = 0; !s.is_done() && steps < 100'000; ++steps) {
      if (!answers.empty() && answers.begin()->first <= next) {
        const auto one = answers.extract(answers.begin());
        now = one.key();
        give(s, one.mapped().from, one.mapped().number);
      } else {
        EXPECT_GT(next, now) << "it asks to be called at once, for ever";
        now = next;
      }
      next = s.go_on(now);
    }
    EXPECT_TRUE(s.is_done());
    return now;
  }
  void give(survey& s, node_id from, std::uint32_t number) const {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    EXPECT_TRUE(s.on_message(from, kind::pong, reader(bytes), now));
  }
  void hear(survey& s, node_id from, kind k, std::size_t bytes, std::uint32_t number = 0) const {
    std::vector<std::byte> payload(std::max(bytes, sizeof number));
    std::memcpy(payload.data(), &number, sizeof number);
    payload.resize(bytes);
    EXPECT_TRUE(s.on_message(from, k, reader(payload), now));
  }
};

constexpr survey::limits usual{};

TEST(survey, finds_latency_and_bandwidth) {
  played p;
  p.wires = {{1, {100'000, 1.0}}, {2, {2'000'000, 0.01}}, {3, {300'000'000, 0.1}}};
  survey s(p, {1, 2, 3}, 0, usual);
  const std::int64_t took = p.play(s);
  EXPECT_LT(took, usual.all_ns);
  const auto all = s.results();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].latency_ns, 50'000);
  EXPECT_NEAR(static_cast<double>(all[0].bytes_per_s), 1e9, 1e8);
  EXPECT_EQ(all[1].latency_ns, 1'000'000);
  EXPECT_NEAR(static_cast<double>(all[1].bytes_per_s), 1e7, 1e6);
  // Its answers come later than one waits at first.
  EXPECT_EQ(all[2].latency_ns, 150'000'000);
}

TEST(survey, of_nobody_is_done) {
  played p;
  survey s(p, {}, 5, usual);
  EXPECT_TRUE(s.is_done());
  EXPECT_EQ(s.go_on(5), INT64_MAX);
  EXPECT_TRUE(s.results().empty());
}

TEST(survey, waits_for_nobody_longer_than_it_says) {
  for (unsigned silent = 1; silent < 60; silent += 7) {
    played p;
    std::vector<node_id> others;
    for (unsigned n = 1; n <= silent; ++n) others.push_back(static_cast<node_id>(n));
    p.wires[100] = {100'000};
    others.push_back(100);
    survey s(p, others, 0, usual);
    EXPECT_EQ(p.play(s), usual.all_ns);
    for (const survey::result& r : s.results()) {
      if (r.node == 100) {
        EXPECT_EQ(r.latency_ns, 50'000);
      } else {
        EXPECT_GE(r.latency_ns, usual.patience_ns / 2);
        EXPECT_EQ(r.bytes_per_s, 0);
      }
    }
  }
}

TEST(survey, tries_again_who_was_not_there_yet) {
  played p;
  survey s(p, {1, 2}, 0, usual);
  std::int64_t next = s.go_on(0);
  while (p.now < 500'000'000) {
    p.now = next;
    next = s.go_on(p.now);
  }
  p.wires = {{1, {80'000}}, {2, {80'000}}};
  // What it was asked in vain it answers now, late as that is.
  p.give(s, 1, 0);
  EXPECT_LT(p.play(s), usual.all_ns);
  for (const survey::result& r : s.results()) EXPECT_EQ(r.latency_ns, 40'000) << r.node;
}

TEST(survey, ends_also_where_nothing_finds_room) {
  played p;
  p.has_room = false;
  survey s(p, {1, 2}, 0, usual);
  EXPECT_EQ(p.play(s), usual.all_ns);
  EXPECT_TRUE(s.results().empty()) << "of whom nobody asked anything nothing is known";
}

TEST(survey, a_stream_that_stops_is_given_up) {
  played p;
  p.wires[1] = {100'000, 0.001};  // 256 KiB take a quarter of a second
  survey s(p, {1}, 0, usual);
  EXPECT_LT(p.play(s), 400'000'000);
  const auto all = s.results();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NEAR(static_cast<double>(all[0].bytes_per_s), 1e6, 2e5);
}

// A stream that something disturbed does not count, if others were fast.
TEST(survey, takes_the_fastest_of_some_streams) {
  for (unsigned disturbed = 0; disturbed < usual.streams; ++disturbed) {
    played p;
    p.wires[1] = {100'000, 1.0};
    survey s(p, {1}, 0, usual);
    std::int64_t next = s.go_on(0);
    unsigned stream = 0;
    while (!s.is_done()) {
      const auto one = p.answers.extract(p.answers.begin());
      p.now = std::max(one.key(), p.now);
      const bool first_of_stream = one.mapped().number == usual.rounds + stream * usual.pieces;
      if (first_of_stream && stream++ == disturbed) p.now += 4'000'000;
      p.give(s, 1, one.mapped().number);
      next = s.go_on(p.now);
    }
    EXPECT_EQ(next, INT64_MAX);
    EXPECT_EQ(stream, usual.streams);
    EXPECT_NEAR(static_cast<double>(s.results()[0].bytes_per_s), 1e9, 1e8) << disturbed;
  }
}

// Two of three answer slowly; one because it is far away, the other because its machine was busy.
TEST(survey, doubts_who_took_long) {
  played p;
  p.wires = {{1, {20'000'000, 1.0}}, {2, {20'000'000, 0.01}}, {3, {100'000, 1.0}}};
  survey s(p, {1, 2, 3}, 0, usual);
  std::int64_t next = s.go_on(0);
  while (!s.is_done()) {
    if (!p.answers.empty() && p.answers.begin()->first <= next) {
      const auto one = p.answers.extract(p.answers.begin());
      p.now = one.key();
      // The third has had its turn.
      if (one.mapped().from == 3) p.wires[2] = {100'000, 1.0};
      p.give(s, one.mapped().from, one.mapped().number);
    } else {
      p.now = next;
    }
    next = s.go_on(p.now);
  }
  const auto all = s.results();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].latency_ns, 10'000'000);
  EXPECT_EQ(all[1].latency_ns, 50'000);
  EXPECT_NEAR(static_cast<double>(all[1].bytes_per_s), 1e9, 1e8);
  EXPECT_EQ(all[2].latency_ns, 50'000);
  // One that is far away is asked again for so many turns, and streamed to once.
  std::size_t asked = 0;
  for (const auto& [to, k] : p.posted) asked += to == 1 && k == kind::ping ? 1 : 0;
  EXPECT_LE(asked, 3 * usual.turns + usual.pieces);  // 50 ms are less than three rounds of 20
  EXPECT_GT(asked, 3 + usual.pieces);
  EXPECT_LT(p.now, 500'000'000);
}

TEST(survey, answers_everybody_also_when_it_is_done) {
  played p;
  survey s(p, {}, 0, usual);
  p.hear(s, 3, kind::ping, 4);
  p.hear(s, 3, kind::ping, 4 + survey::piece_bytes);
  const std::vector<std::pair<node_id, kind>> pongs(2, {3, kind::pong});
  EXPECT_EQ(p.posted, pongs);
  EXPECT_FALSE(s.on_message(3, kind::put, reader({}), 0)) << "none of its kinds";
}

TEST(survey, refuses_nonsense) {
  played p;
  survey s(p, {1, 2}, 0, usual);
  (void)s.go_on(0);  // asks node 1, as number 0
  const auto refused = [&](node_id from, kind k, std::size_t bytes, std::uint32_t number) {
    EXPECT_THROW(p.hear(s, from, k, bytes, number), malformed) << bytes << " " << number;
  };
  for (const std::size_t bytes : {0, 1, 3}) {
    refused(1, kind::ping, bytes, 0);
    refused(1, kind::pong, bytes, 0);
  }
  for (const std::size_t bytes :
       {std::size_t{5}, survey::piece_bytes, survey::piece_bytes + 5, net::payload_bytes_max})
    refused(1, kind::ping, bytes, 0);
  refused(1, kind::pong, 5, 0);
  refused(1, kind::pong, 4 + survey::piece_bytes, 0);
  refused(1, kind::pong, 4, 1);
  refused(1, kind::pong, 4, 0xffffffff);
  refused(2, kind::pong, 4, 0);   // it was not asked
  refused(60, kind::pong, 4, 0);  // nor is it anybody
  p.hear(s, 1, kind::pong, 4, 0);
  refused(1, kind::pong, 4, 0);  // twice
}

// What answers the survey before this one may come late.
TEST(survey, takes_no_offence_at_what_answers_another_one) {
  played p;
  survey s(p, {1}, 0, usual, 100);
  (void)s.go_on(0);
  EXPECT_EQ(s.next_number(), 101U);
  p.hear(s, 1, kind::pong, 4, 0);
  p.hear(s, 2, kind::pong, 4, 99);
  EXPECT_THROW(p.hear(s, 1, kind::pong, 4, 101), malformed);
  p.hear(s, 1, kind::pong, 4, 100);
  EXPECT_THROW(p.hear(s, 1, kind::pong, 4, 100), malformed);
}

}  // namespace
}  // namespace strata::cluster

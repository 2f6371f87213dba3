// SPDX-License-Identifier: Apache-2.0
// When connections are made again: who tries, how often, and what happens while all is well. The
// protocol around it is in tests/sim.
#include "cluster/links/mending.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace strata::cluster {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

class recorded_tries final : public mending::hands {
 public:
  bool connect_again(node_id n, mending::network over) override {
    tries.emplace_back(n, over);
    return is_time;
  }
  std::vector<node_id> spares() override { return with_spares; }
  void speak_by_spare(node_id n) override { spoken.push_back(n); }
  void give_up_spare(node_id n) override { given_up.push_back(n); }

  bool is_time = true;
  std::vector<node_id> with_spares, spoken, given_up;
  std::vector<std::pair<node_id, mending::network>> tries;
};

class seams : public testing::Test {
 protected:
  // The pauses before each of so many attempts, all of which fail at once.
  std::vector<std::int64_t> pauses(std::size_t attempts) {
    std::vector<std::int64_t> all;
    for (std::int64_t last = now; all.size() < attempts;) {
      now = m.on_time(now);
      const std::size_t before = h.tries.size();
      (void)m.on_time(now);
      if (h.tries.size() == before) continue;
      m.failed(h.tries.back().first, h.tries.back().second, now);
      all.push_back((now - last) / second_ns);
      last = now;
    }
    return all;
  }
  recorded_tries h;
  std::int64_t now = 100 * second_ns;
  mending m{5, {}, h, now};
};

TEST_F(seams, are_tried_at_twice_the_pause_each_time_up_to_half_a_minute) {
  m.lost(2, 1, now);
  EXPECT_EQ(pauses(8), (std::vector<std::int64_t>{1, 2, 4, 8, 16, 30, 30, 30}));
  EXPECT_EQ(h.tries.front(), std::pair(node_id{2}, mending::network{1}));
}

TEST_F(seams, are_tried_by_the_higher_number_only) {
  m.lost(7, 0, now);
  for (int i = 0; i < 10; ++i) now = m.on_time(now);
  EXPECT_TRUE(h.tries.empty());
}

TEST_F(seams, are_left_alone_once_there_is_a_connection_again_or_nobody) {
  m.lost(2, 0, now);
  m.lost(3, 0, now);
  m.made(2, 0, now);
  m.forget(3);
  for (int i = 0; i < 10; ++i) now = m.on_time(now);
  EXPECT_TRUE(h.tries.empty());
}

TEST_F(seams, of_connections_that_do_not_stand_are_tried_no_more_often) {
  m.lost(2, 0, now);
  EXPECT_EQ(pauses(3), (std::vector<std::int64_t>{1, 2, 4}));
  m.made(2, 0, now);
  now += second_ns;
  m.lost(2, 0, now);
  EXPECT_EQ(pauses(1), (std::vector<std::int64_t>{8}));
  m.made(2, 0, now);
  now += 31 * second_ns;
  m.lost(2, 0, now);
  EXPECT_EQ(pauses(2), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(seams, are_tried_by_one_attempt_at_a_time) {
  m.lost(2, 0, now);
  for (int i = 0; i < 5; ++i) now = m.on_time(now);
  EXPECT_EQ(h.tries.size(), 1U);
}

TEST_F(seams, are_tried_later_where_it_is_not_clear_yet_how_the_two_go_on) {
  h.is_time = false;
  m.lost(2, 0, now);
  for (int i = 0; i < 4; ++i) now = m.on_time(now);
  EXPECT_EQ(h.tries.size(), 3U);
  EXPECT_EQ(now, 104 * second_ns);
}

TEST_F(seams, of_spare_connections_show_when_nothing_is_heard_by_them) {
  h.with_spares = {2, 7};
  EXPECT_EQ(m.on_time(now), now + 5 * second_ns);
  EXPECT_TRUE(h.spoken.empty());
  for (int look = 1; look <= 3; ++look) {
    now += 5 * second_ns;
    EXPECT_EQ(m.on_time(now), now + 5 * second_ns);
    EXPECT_EQ(h.given_up.empty(), look < 3);
    m.heard_by_spare(7);
  }
  EXPECT_EQ(h.given_up, std::vector<node_id>{2});
  EXPECT_EQ(h.spoken, (std::vector<node_id>{2, 7, 2, 7, 7}));
}

}  // namespace
}  // namespace strata::cluster

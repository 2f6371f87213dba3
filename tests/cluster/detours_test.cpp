// SPDX-License-Identifier: Apache-2.0
// Around connections that end: what a node says to whom, and that it believes nothing. Whole jobs
// are in tests/sim and tests/detours.
#include "cluster/links/detours.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/links/unconfirmed.hpp"

namespace strata::cluster {
namespace {

struct said {
  node_id to;
  kind k;
  std::vector<std::byte> payload;
};

// Node 0 of four in a ring, of which each shares a network with the next one and the one before.
class recorder final : public detours::hands {
 public:
  bool is_connected(node_id n) override { return n == 1 || n == 3; }
  std::uint64_t close(node_id n) override {
    closed.push_back(n);
    return 7;
  }
  std::uint64_t given(node_id) override { return 20; }
  std::uint64_t come(node_id) override { return come_so_far; }
  bool say_by_spare(node_id n, kind k, std::span<const std::byte> payload) override {
    if (spare) by_spare.push_back({n, k, {payload.begin(), payload.end()}});
    return spare;
  }
  void drop_spare(node_id) override { spare = false; }
  void go_on(node_id n, std::uint64_t count) override { goes_on[n] = count; }
  void say(node_id n, kind k, std::span<const std::byte> head,
           std::span<const std::byte> body) override {
    all.push_back({n, k, copy_of(k, head, body).payload});
  }
  void pass_on(node_id next, std::span<const std::byte> head, std::span<const std::byte> payload,
               const detours::pair_in_order&) override {
    say(next, kind::detour, head, payload);
  }
  void answer(node_id n, kind k, std::span<const std::byte> payload) override {
    answered.push_back({n, k, {payload.begin(), payload.end()}});
  }
  void let_go(node_id n) override {
    if (!left.contains(n)) throw malformed("it has not left");
    gone.push_back(n);
  }
  void heard_of(node_id n) override { lives.insert(n); }
  void go_by(node_id n, std::uint64_t count, const detours::path& way) override {
    if (count > given_at_most) throw malformed("more has come than was given");
    goes_by[n] = {count, way};
  }
  void go_by_another(node_id n, const detours::path& way) override { goes_by.at(n).second = way; }
  void on_detoured(node_id n, kind k, std::span<const std::byte> payload) override {
    heard.push_back({n, k, {payload.begin(), payload.end()}});
  }
  routes ways_without(node_id n, const std::set<detours::pair>& without) override {
    return {n, 4, [without, more = more](node_id a, node_id b) -> std::optional<link> {
              const bool in_ring = (a + 1) % 4 == b || (b + 1) % 4 == a;
              const bool is_there = in_ring || more == detours::pair(std::minmax(a, b));
              if (!is_there || without.contains(std::minmax(a, b))) return std::nullopt;
              return link(1);
            }};
  }
  void end_detour(node_id n, kind k, std::span<const std::byte> payload) override {
    last.push_back({n, k, {payload.begin(), payload.end()}});
  }
  bool has_ended_detour(node_id) override { return has_room; }
  bool begin_anew(node_id n) override {
    begun.push_back(n);
    return true;
  }
  void on_word(const detours::pair& ends, std::uint32_t number) override {
    (number % 2 != 0) ? (void)cuts.insert(ends) : (void)cuts.erase(ends);
  }
  void lose(node_id n, const std::string& why) override { lost[n] = why; }
  void cannot_reach(node_id n, const std::string& why) override { lost[n] = why; }

  bool spare = false;
  std::optional<detours::pair> more;  // who share one, too
  std::uint64_t come_so_far = 20, given_at_most = 20;
  std::vector<node_id> closed;
  bool has_room = true;  // for what goes last by a detour
  std::vector<node_id> begun;
  std::vector<said> all, by_spare, heard, last, answered;
  std::set<node_id> left;
  std::vector<node_id> gone;
  std::map<node_id, std::uint64_t> goes_on;
  std::map<node_id, std::pair<std::uint64_t, detours::path>> goes_by;
  std::set<detours::pair> cuts;
  std::set<node_id> lives;
  std::map<node_id, std::string> lost;
};

template <class... T>
std::vector<std::byte> packed(T... values) {
  std::vector<std::byte> bytes((sizeof(T) + ... + 0));
  std::size_t at = 0;
  ((std::memcpy(bytes.data() + at, &values, sizeof values), at += sizeof values), ...);
  return bytes;
}
constexpr auto u16 = [](unsigned n) { return static_cast<std::uint16_t>(n); };
constexpr auto u32 = [](unsigned n) { return static_cast<std::uint32_t>(n); };

class around : public testing::Test {
 protected:
  // As it comes from the last one before us.
  bool hear(node_id from, kind k, const std::vector<std::byte>& payload) {
    return d.on_message(from, k, reader(payload));
  }
  static std::vector<std::byte> by_detour(node_id source, kind k, const detours::path& way,
                                          unsigned at, const std::vector<std::byte>& payload) {
    std::vector<std::byte> bytes = detour_head(source, k, way);
    const auto turn = u16(at);
    std::memcpy(bytes.data() + 4, &turn, sizeof turn);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  recorder h;
  detours d{0, 4, {}, h};
};

TEST_F(around, a_connection_that_ends_is_replaced_by_the_way_that_is_left) {
  d.on_broken(1, "ended");
  d.on_broken(1, "ended again");
  EXPECT_EQ(h.closed, std::vector<node_id>{1});
  EXPECT_EQ(h.cuts, (std::set<detours::pair>{{0, 1}}));
  ASSERT_EQ(h.all.size(), 2U);
  EXPECT_EQ(h.all[0].to, 3);
  EXPECT_EQ(h.all[0].k, kind::cut_off);
  EXPECT_EQ(h.all[1].to, 3);
  EXPECT_EQ(h.all[1].k, kind::detour);
  EXPECT_EQ(h.all[1].payload,
            by_detour(0, kind::resume, {3, 2, 1}, 0, packed(std::uint64_t{7}, u32(0))));
  EXPECT_TRUE(h.goes_by.empty()) << "nobody knows yet what has come there";
  hear(3, kind::detour, by_detour(1, kind::resume, {2, 3, 0}, 2, packed(std::uint64_t{5}, u32(0))));
  EXPECT_EQ(h.goes_by[1], std::pair(std::uint64_t{5}, detours::path{3, 2, 1}));
  hear(3, kind::detour, by_detour(1, kind::put, {2, 3, 0}, 2, packed(u16(9))));
  ASSERT_EQ(h.heard.size(), 1U);
  EXPECT_EQ(h.heard[0].to, 1);
  EXPECT_EQ(h.heard[0].k, kind::put);
  EXPECT_EQ(h.heard[0].payload, packed(u16(9)));
}

TEST_F(around, the_other_end_may_notice_it_first) {
  hear(3, kind::detour, by_detour(1, kind::resume, {2, 3, 0}, 2, packed(std::uint64_t{5}, u32(0))));
  EXPECT_EQ(h.closed, std::vector<node_id>{1});
  EXPECT_EQ(h.goes_by.at(1).first, 5U);
}

TEST_F(around, what_goes_by_here_is_passed_on) {
  hear(1, kind::detour, by_detour(1, kind::put, {0, 3, 2}, 0, packed(u16(4))));
  ASSERT_EQ(h.all.size(), 1U);
  EXPECT_EQ(h.all[0].to, 3);
  EXPECT_EQ(h.all[0].payload, by_detour(1, kind::put, {0, 3, 2}, 1, packed(u16(4))));
}

TEST_F(around, everybody_is_told_once) {
  hear(3, kind::cut_off, packed(u16(1), u16(2), u32(1)));
  hear(1, kind::cut_off, packed(u16(1), u16(2), u32(1)));
  ASSERT_EQ(h.all.size(), 1U);
  EXPECT_EQ(h.all[0].to, 1);
  EXPECT_EQ(h.all[0].payload, packed(u16(1), u16(2), u32(1)));
}

TEST_F(around, who_is_reached_by_nobody_is_lost) {
  d.on_broken(1, "ended");
  EXPECT_TRUE(h.lost.empty());
  hear(3, kind::cut_off, packed(u16(1), u16(2), u32(1)));
  EXPECT_EQ(h.lost, (std::map<node_id, std::string>{{1, "ended"}}));
}

TEST_F(around, who_has_left_says_when_all_know_it) {
  d.say_gone();
  ASSERT_EQ(h.all.size(), 2U);
  for (const said& s : h.all) {
    EXPECT_EQ(s.k, kind::gone);
    EXPECT_EQ(s.payload, packed(u16(0)));
  }
}

TEST_F(around, who_has_gone_is_let_go) {
  d.on_broken(1, "ended");
  EXPECT_THROW(hear(1, kind::gone, packed(u16(1))), malformed);
  EXPECT_TRUE(d.is_broken(1));
  h.left.insert(1);
  hear(1, kind::gone, packed(u16(1)));
  hear(3, kind::gone, packed(u16(1)));
  EXPECT_EQ(h.gone, std::vector<node_id>{1});
  EXPECT_TRUE(d.has_gone(1));
  EXPECT_FALSE(d.is_broken(1));
}

TEST_F(around, who_asks_for_a_detour_to_one_that_has_gone_is_told) {
  h.left.insert(3);
  hear(3, kind::gone, packed(u16(3)));
  hear(1, kind::detour, by_detour(2, kind::resume, {1, 0, 3}, 1, packed(std::uint64_t{7}, u32(0))));
  EXPECT_TRUE(h.all.empty());
  ASSERT_EQ(h.answered.size(), 1U);
  EXPECT_EQ(h.answered[0].to, 2);
  EXPECT_EQ(h.answered[0].k, kind::gone);
  EXPECT_EQ(h.answered[0].payload, packed(u16(3)));
}

// Copies of it would be kept for ever.
TEST_F(around, who_has_gone_is_told_nothing) {
  h.left.insert(3);
  hear(3, kind::gone, packed(u16(3)));
  hear(1, kind::cut_off, packed(u16(1), u16(2), u32(1)));
  EXPECT_EQ(h.cuts, (std::set<detours::pair>{{1, 2}}));
  EXPECT_TRUE(h.all.empty());
}

TEST_F(around, a_spare_connection_takes_the_place_and_nobody_hears_of_it) {
  h.spare = true;
  d.on_broken(1, "ended");
  ASSERT_EQ(h.by_spare.size(), 1U);
  EXPECT_EQ(h.by_spare[0].k, kind::resume);
  EXPECT_EQ(h.by_spare[0].payload, packed(std::uint64_t{7}, u32(0)));
  hear(1, kind::resume, packed(std::uint64_t{6}, u32(0)));
  EXPECT_EQ(h.goes_on.at(1), 6U);
  EXPECT_TRUE(h.all.empty());
  EXPECT_TRUE(h.cuts.empty());
}

TEST_F(around, a_spare_connection_that_answers_nothing_is_given_up) {
  h.spare = true;
  d.on_broken(1, "ended");
  for (int i = 0; i < 3; ++i) d.beat();
  EXPECT_FALSE(h.spare);
  EXPECT_EQ(h.cuts, (std::set<detours::pair>{{0, 1}}));
  EXPECT_EQ(h.all.back().k, kind::detour);
}

// Of the past, and of what is there again.
TEST_F(around, what_is_heard_late_is_no_news) {
  const auto hears = [&](unsigned number) {
    hear(3, kind::cut_off, packed(u16(1), u16(2), u32(number)));
    return h.cuts.contains({1, 2});
  };
  EXPECT_TRUE(hears(1));
  EXPECT_FALSE(hears(2));
  EXPECT_FALSE(hears(1));
  EXPECT_TRUE(hears(5));
  EXPECT_TRUE(hears(4));
  EXPECT_EQ(h.all.size(), 3U);
  d.learn({{{1, 2}, 6}, {{0, 1}, 1}});
  EXPECT_FALSE(d.cuts().contains({1, 2}));
  EXPECT_FALSE(d.is_cut(1)) << "of its own connections it knows more";
  hear(3, kind::cut_off, packed(u16(0), u16(1), u32(2)));
  EXPECT_TRUE(h.closed.empty());
}

class around_until_it_returns : public around {
 protected:
  void SetUp() override {
    d.on_broken(1, "ended");
    say_by_detour(kind::resume, packed(std::uint64_t{5}, u32(0)));
    h.all.clear();
  }
  void say_by_detour(kind k, const std::vector<std::byte>& payload) {
    hear(3, kind::detour, by_detour(1, k, {2, 3, 0}, 2, payload));
  }
  void say_number(unsigned number) {
    say_by_detour(kind::cut_off, packed(u16(0), u16(1), u32(number)));
  }
};

TEST_F(around_until_it_returns, each_says_its_last_by_the_detour_before_both_begin_anew) {
  d.on_connected(1);
  ASSERT_EQ(h.all.size(), 1U);
  EXPECT_EQ(h.all[0].to, 1);
  EXPECT_EQ(h.all[0].payload, packed(u16(0), u16(1), u32(1)));
  EXPECT_TRUE(h.last.empty()) << "the other end may never have a connection";
  EXPECT_FALSE(d.is_undecided(1));
  say_number(1);
  ASSERT_EQ(h.last.size(), 1U);
  EXPECT_EQ(h.last[0].payload, packed(u16(0), u16(1), u32(2)));
  EXPECT_TRUE(d.is_undecided(1));
  EXPECT_TRUE(h.begun.empty()) << "something may still come by the detour";
  h.has_room = false;
  say_number(2);
  EXPECT_TRUE(h.begun.empty()) << "its own last is still here";
  EXPECT_TRUE(d.try_to_begin_anew());
  h.has_room = true;
  EXPECT_FALSE(d.try_to_begin_anew());
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  EXPECT_FALSE(d.is_broken(1));
  EXPECT_TRUE(h.cuts.empty());
  EXPECT_FALSE(d.is_cut(1));
  // All are told, the other end among them.
  ASSERT_EQ(h.all.size(), 3U);
  for (const said& s : {h.all[1], h.all[2]}) EXPECT_EQ(s.payload, packed(u16(0), u16(1), u32(2)));
}

TEST_F(around_until_it_returns, all_is_said_again_when_one_leaves_by_which_it_went) {
  d.on_connected(1);
  say_number(1);
  h.all.clear();
  h.more = {1, 3};
  d.on_left(2);
  EXPECT_EQ(h.goes_by.at(1).second, (detours::path{3, 1}));
  ASSERT_EQ(h.all.size(), 2U);
  for (const unsigned i : {0U, 1U}) {
    EXPECT_EQ(h.all[i].to, 3);
    EXPECT_EQ(h.all[i].payload,
              by_detour(0, kind::cut_off, {3, 1}, 0, packed(u16(0), u16(1), u32(i + 1))));
  }
  say_number(2);
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  // The other end has said it by two ways as well.
  say_number(1);
  say_number(2);
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  EXPECT_TRUE(h.lost.empty());
  d.on_left(3);
  EXPECT_TRUE(h.lost.empty()) << "nothing goes around by that one";
}

TEST_F(around_until_it_returns, the_other_end_may_be_first) {
  say_number(1);
  EXPECT_TRUE(h.last.empty());
  d.on_connected(1);
  EXPECT_EQ(h.last.size(), 1U);
  say_number(2);
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  // It ends as any other one, and what is said of it has its number.
  h.all.clear();
  d.on_broken(1, "ended");
  EXPECT_EQ(h.closed, (std::vector<node_id>{1, 1}));
  EXPECT_EQ(h.all.back().payload,
            by_detour(0, kind::resume, {3, 2, 1}, 0, packed(std::uint64_t{7}, u32(2))));
  h.goes_by.clear();
  say_by_detour(kind::resume, packed(std::uint64_t{5}, u32(0)));
  EXPECT_TRUE(h.goes_by.empty()) << "that was of the first one";
  say_by_detour(kind::resume, packed(std::uint64_t{3}, u32(2)));
  EXPECT_EQ(h.goes_by.at(1).first, 3U);
}

// It has heard everything before this node has.
TEST_F(around_until_it_returns, the_other_end_may_have_begun_and_ended_it_again) {
  d.on_connected(1);
  say_number(1);
  h.goes_by.clear();
  hear(3, kind::cut_off, packed(u16(0), u16(1), u32(3)));
  say_by_detour(kind::resume, packed(std::uint64_t{0}, u32(2)));
  EXPECT_TRUE(h.begun.empty());
  EXPECT_EQ(h.closed, std::vector<node_id>{1});
  say_number(2);
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  EXPECT_EQ(h.closed, (std::vector<node_id>{1, 1}));
  EXPECT_TRUE(d.is_cut(1));
  EXPECT_EQ(h.goes_by.at(1).first, 0U);
}

// Nothing has been given to the new one. What is missing last does not come from n.
TEST_F(around_until_it_returns, who_has_said_nonsense_of_it_is_lost_whoever_comes_last) {
  h.given_at_most = 0;
  say_by_detour(kind::resume, packed(std::uint64_t{1}, u32(2)));
  say_number(1);
  say_number(2);
  EXPECT_TRUE(h.lost.empty());
  EXPECT_NO_THROW(d.on_connected(1));
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  EXPECT_TRUE(h.lost.contains(1));
  EXPECT_EQ(h.lost.size(), 1U);
}

TEST_F(around_until_it_returns, who_has_said_nonsense_of_it_is_lost_when_there_is_room) {
  h.given_at_most = 0;
  d.on_connected(1);
  say_by_detour(kind::resume, packed(std::uint64_t{1}, u32(2)));
  say_number(1);
  h.has_room = false;
  say_number(2);
  EXPECT_TRUE(d.try_to_begin_anew());
  EXPECT_TRUE(h.lost.empty());
  h.has_room = true;
  EXPECT_NO_THROW((void)d.try_to_begin_anew());
  EXPECT_EQ(h.begun, std::vector<node_id>{1});
  EXPECT_TRUE(h.lost.contains(1));
  EXPECT_EQ(h.lost.size(), 1U);
}

TEST_F(around_until_it_returns, nonsense_about_it_is_refused) {
  say_number(3);
  EXPECT_TRUE(h.lost.contains(1));
  h.lost.clear();
  say_by_detour(kind::resume, packed(std::uint64_t{0}, u32(4)));
  EXPECT_TRUE(h.lost.contains(1));
}

TEST_F(around, who_is_silent_is_asked_by_others) {
  d.on_silent(1);
  ASSERT_EQ(h.all.size(), 1U);
  EXPECT_EQ(h.all[0].to, 3);
  EXPECT_EQ(h.all[0].payload, by_detour(0, kind::unheard, {3, 2, 1}, 0, packed(std::uint64_t{20})));
  EXPECT_TRUE(h.closed.empty());
}

TEST_F(around, who_was_stopped_gives_nothing_up_when_all_comes_after_all) {
  const auto complain = [&] {
    hear(3, kind::detour, by_detour(1, kind::unheard, {2, 3, 0}, 2, packed(std::uint64_t{20})));
  };
  h.come_so_far = 3;
  for (int i = 0; i < 5; ++i) complain();
  d.beat();
  h.come_so_far = 20;
  d.beat();
  complain();
  d.beat();
  EXPECT_TRUE(h.closed.empty());
}

TEST_F(around, who_lives_and_hears_nothing_gives_the_connection_up) {
  h.come_so_far = 19;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(h.closed.empty());
    hear(3, kind::detour, by_detour(1, kind::unheard, {2, 3, 0}, 2, packed(std::uint64_t{20})));
    d.beat();
  }
  EXPECT_EQ(h.closed, std::vector<node_id>{1});
}

TEST_F(around, who_hears_and_is_not_heard_gives_it_up_later) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(h.closed.empty()) << i;
    hear(3, kind::detour, by_detour(1, kind::unheard, {2, 3, 0}, 2, packed(std::uint64_t{20})));
    d.beat();
  }
  EXPECT_EQ(h.closed, std::vector<node_id>{1});
}

TEST_F(around, nonsense_is_refused) {
  EXPECT_THROW(hear(1, kind::gone, packed(u16(0))), malformed);
  EXPECT_THROW(hear(1, kind::gone, packed(u16(4))), malformed);
  EXPECT_THROW(hear(1, kind::gone, packed(u16(3), u16(3))), malformed);
  const auto refuses = [&](kind k, const std::vector<std::byte>& payload) {
    EXPECT_THROW(hear(3, k, payload), malformed);
  };
  refuses(kind::cut_off, packed(u16(2), u16(1), u32(1)));
  refuses(kind::cut_off, packed(u16(1), u16(4), u32(1)));
  refuses(kind::cut_off, packed(u16(1)));
  refuses(kind::cut_off, packed(u16(1), u16(2)));
  refuses(kind::cut_off, packed(u16(1), u16(2), u32(0)));
  refuses(kind::cut_off, packed(u16(1), u16(2), u32(1), u16(0)));
  refuses(kind::resume, packed(u16(1)));
  refuses(kind::resume, packed(std::uint64_t{1}, u32(1)));
  refuses(kind::unheard, packed(std::uint64_t{1}, u16(1)));
  const std::vector<std::byte> none;
  refuses(kind::detour, none);
  refuses(kind::detour, by_detour(1, kind::put, {0}, 0, none));        // no detour
  refuses(kind::detour, by_detour(1, kind::put, {2, 3, 0}, 1, none));  // not our turn
  refuses(kind::detour, by_detour(1, kind::put, {2, 3, 0}, 3, none));  // nobody's
  refuses(kind::detour, by_detour(0, kind::put, {2, 3, 0}, 2, none));  // from us
  refuses(kind::detour, by_detour(9, kind::put, {2, 3, 0}, 2, none));  // from nobody
  refuses(kind::detour, by_detour(1, kind::put, {0, 9}, 0, none));     // to nobody
  refuses(kind::detour, by_detour(1, kind::put, {0, 2}, 0, none));     // over no network
  refuses(kind::detour, by_detour(2, kind::put, {3, 0}, 1, none));     // of no neighbour
  std::vector<std::byte> cut = by_detour(1, kind::put, {2, 3, 0}, 2, none);
  cut.resize(cut.size() - 1);
  refuses(kind::detour, cut);
  EXPECT_THROW(
      hear(3, kind::detour, by_detour(1, kind::put, detours::path(17, node_id{3}), 0, none)),
      malformed);
  EXPECT_TRUE(h.closed.empty());
}

// Not who has passed it on.
TEST_F(around, who_has_sent_nonsense_by_a_detour_is_lost) {
  const auto hear_of_1 = [&](kind k, const std::vector<std::byte>& payload) {
    h.lost.clear();
    hear(3, kind::detour, by_detour(1, k, {2, 3, 0}, 2, payload));
    EXPECT_TRUE(h.lost.contains(1));
    EXPECT_EQ(h.lost.size(), 1U);
  };
  hear_of_1(kind::put, {});     // around a connection that is there
  hear_of_1(kind::resume, {});  // says too little
  EXPECT_EQ(h.lives, std::set<node_id>{1});
}

TEST(unconfirmed_messages, are_those_that_nobody_has_confirmed) {
  unconfirmed u;
  for (int i = 0; i < 5; ++i) u.keep(copy_of(kind::put, std::as_bytes(std::span(&i, 1)), {}));
  u.confirm(2);
  u.confirm(1);  // said before
  EXPECT_THROW(u.confirm(6), malformed);
  EXPECT_EQ(u.given(), 5U);
  // There was no room for it after all.
  const std::size_t bytes = u.bytes();
  u.keep(copy_of(kind::get, {}, {}));
  EXPECT_EQ(u.take_last().k, kind::get);
  EXPECT_EQ(u.given(), 5U);
  EXPECT_EQ(u.bytes(), bytes);
  for (int i = 4; i >= 2; --i) {
    ASSERT_TRUE(u.keeps_any());
    const message_copy last = u.take_last();
    int number = 0;
    std::memcpy(&number, last.payload.data(), sizeof number);
    EXPECT_EQ(number, i);
  }
  EXPECT_FALSE(u.keeps_any());
  EXPECT_EQ(u.bytes(), 0U);
  u.keep({kind::put, {}});
  u.begin_anew();
  EXPECT_EQ(u.given(), 0U);
  EXPECT_EQ(u.bytes(), 0U);
}

TEST(unconfirmed_messages, are_silent_after_two_whole_beats) {
  unconfirmed u;
  EXPECT_FALSE(u.is_silent());
  u.keep({kind::put, {}});
  EXPECT_FALSE(u.is_silent());
  EXPECT_FALSE(u.is_silent());
  EXPECT_TRUE(u.is_silent());
  u.confirm(1);
  EXPECT_FALSE(u.is_silent());
}

}  // namespace
}  // namespace strata::cluster

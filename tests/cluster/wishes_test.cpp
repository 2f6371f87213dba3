// SPDX-License-Identifier: Apache-2.0
// A node that has told another one that it waits for work, and the moments in which it says so.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>

#include "cluster/protocols.hpp"
#include "strata/detail/fences.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

// A node without tasks, whose shelf holds nothing but numbers, next to node 1.
class bare_node final : public taskless_node, public mailer, public clock, public net::shelves {
 public:
  explicit bare_node(const stealing_settings& how = {})
      : all(*this, *this, *this, how, 1'000'000'000, [](node_id, const std::string&) {},
            {this, places_max}) {}

  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte>) override {
    EXPECT_EQ(to, 1);
    if (k == kind::steal)
      wishes += reader(head).take<std::array<wish, 2>>()[1] == wish::ahead ? 1 : 0;
    if (k != kind::tokens) return;
    ++sent;
    if (on_arrival) std::exchange(on_arrival, nullptr)();
  }
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return both; }
  void wait_for_room(node_id) override {}

  [[nodiscard]] std::int64_t now_ns() const override { return now; }
  [[nodiscard]] std::uint32_t load() const override { return waiting; }

  unsigned offer(std::span<const std::byte>, unsigned) noexcept override { return places_max; }
  net::taken_thing take_back(std::byte*) noexcept override {
    if (on_shelf == 0) return {};
    --on_shelf;
    return {net::take_outcome::taken, 0, 8};
  }
  void set_attended(bool) noexcept override {}
  [[nodiscard]] unsigned offered() const noexcept override { return on_shelf; }
  net::taken_thing take(node_id, std::byte*) noexcept override { return {}; }

  // Node 1 has asked before in vain, and says that it waits.
  void hear_a_wish(wish w = wish::kept) {
    const std::array<std::uint32_t, 2> request{1, static_cast<std::uint32_t>(w)};
    EXPECT_TRUE(all.on_message(1, kind::steal, std::as_bytes(std::span(request))));
  }
  // From node 1; what they are does not matter here.
  void tokens_arrive() {
    const std::uint32_t load = 0;
    EXPECT_TRUE(all.on_message(1, kind::tokens, std::as_bytes(std::span(&load, 1))));
  }
  // Asks for them first, so that it knows how long a round trip is.
  static constexpr std::int64_t round_trip_ns = 10'000;
  void ask_and_get() {
    all.balance.want_work();
    now += round_trip_ns;
    tokens_arrive();
  }
  void ask_everybody() override { ++asked_now; }
  void ask_everybody_soon() override { ++asked_soon; }

  membership both{0, 2, {1}};
  unsigned on_shelf = 0;
  unsigned sent = 0;
  unsigned wishes = 0;  // left with node 1 ahead
  unsigned asked_now = 0, asked_soon = 0;
  std::uint32_t waiting = 0;
  std::int64_t now = 1'000'000'000;
  std::function<void()> on_arrival;
  protocols all;
};

TEST(wishes, are_answered_from_the_shelf_once) {
  bare_node n;
  n.hear_a_wish();
  EXPECT_EQ(n.sent, 0U);
  n.on_shelf = 2;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 1U);
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 1U);
  EXPECT_EQ(n.on_shelf, 1U);
}

TEST(wishes, that_come_at_once_are_new_ones) {
  bare_node n;
  n.hear_a_wish();
  n.on_shelf = 1;
  // The token is so short that the next wish is here before the call that sent it returns.
  n.on_arrival = [&] { n.hear_a_wish(); };
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 1U);
  n.on_shelf = 1;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 2U);
}

TEST(wishes, find_what_is_on_the_shelf_already) {
  bare_node n;
  n.on_shelf = 1;
  n.on_arrival = [&] { n.hear_a_wish(); };
  n.hear_a_wish();
  EXPECT_EQ(n.sent, 1U);
  n.on_shelf = 1;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 2U);
}

// Another node is hungry, and the oldest task of this one, which is shared, stays here.
struct node_with_what_stays {
  node_with_what_stays() {
    node.hear_a_wish();
    deque.ask();
    EXPECT_TRUE(push(0));
    EXPECT_EQ(deque.tend(), detail::push_outcome::shared);
    node.all.balance.feed(node.worker);
  }
  // Whether the worker has to look after it.
  bool push(std::size_t i) { return deque.push(deque.next(), &stays[i]); }

  bare_node node;
  detail::split_deque<detail::task>& deque = node.worker.deque;
  std::array<detail::task, 4> stays{};
};

// Tasks that stay on their node must not be shared at every push because another node is hungry.
TEST(wishes, wait_while_the_oldest_task_stays_here) {
  if (!detail::asymmetric_fences::available()) GTEST_SKIP() << "every push tends";
  node_with_what_stays n;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 1; i < n.stays.size(); ++i) EXPECT_FALSE(n.push(i));
    for (std::size_t i = n.stays.size() - 1; i > 0; --i) EXPECT_EQ(n.deque.pop(), &n.stays[i]);
  }
  // What comes after the oldest may be for others.
  EXPECT_EQ(n.deque.pop(), n.stays.data());
  EXPECT_TRUE(n.deque.asked());
  EXPECT_TRUE(n.push(0));
}

// The worker has begun it out of its turn; nobody else would ask again.
TEST(wishes, are_looked_at_again_when_the_oldest_task_was_taken_out_of_its_turn) {
  if (!detail::asymmetric_fences::available()) GTEST_SKIP() << "every push tends";
  node_with_what_stays n;
  EXPECT_FALSE(n.push(1));
  EXPECT_EQ(n.deque.take_oldest(), n.stays.data());
  EXPECT_TRUE(n.deque.asked());
  EXPECT_EQ(n.deque.take_oldest(), nullptr) << "nothing is shared";
}

// A worker that goes on for long without coming to where it looks itself, while something waits.
TEST(wishes, of_nobody_are_asked_after_in_time_by_who_sends_unasked) {
  bare_node n({.how = balancing::sender});
  const unsigned asked = n.asked_soon;
  EXPECT_EQ(n.all.balance.ask_in_time(), INT64_MAX);
  EXPECT_EQ(n.asked_soon, asked) << "there is nothing to send";
  n.waiting = 1;
  EXPECT_LT(n.all.balance.ask_in_time(), 10'000'000);
  EXPECT_EQ(n.asked_soon, asked + 1);
  bare_node others({.how = balancing::random});
  others.waiting = 1;
  EXPECT_EQ(others.all.balance.ask_in_time(), INT64_MAX);
  EXPECT_EQ(others.asked_soon, 0U);
}

// The next token comes while this one runs, where it would otherwise be missed.
TEST(wishes, are_left_ahead_where_tokens_do_not_last) {
  bare_node n;
  n.ask_and_get();
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 0U) << "nobody knows yet how long they last";
  n.now += 20 * bare_node::round_trip_ns;
  n.ask_and_get();
  EXPECT_EQ(n.wishes, 0U) << "the token comes first";
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 1U);
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 1U) << "one wish for what one message brought";
  // Unasked, while the one before runs: so that the worker need not do it later.
  n.now += 10 * bare_node::round_trip_ns;
  n.waiting = 1;
  n.tokens_arrive();
  EXPECT_EQ(n.wishes, 2U);
}

TEST(wishes, are_not_left_ahead_of_long_tokens_or_beside_others) {
  bare_node n;
  n.ask_and_get();
  n.now += 100 * bare_node::round_trip_ns;
  n.tokens_arrive();
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 0U) << "to get the next one takes little of its time";
  n.now += 20 * bare_node::round_trip_ns;
  n.waiting = 2;
  n.tokens_arrive();
  n.waiting = 1;
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 0U) << "another one waits here";
  n.waiting = 0;
  n.all.balance.begins_token();
  EXPECT_EQ(n.wishes, 1U) << "that one is the last";
}

// Who has a token still is not worth a fence in everybody's way.
TEST(wishes, ahead_disturb_nobody_and_are_answered_by_the_next_push) {
  bare_node n;
  n.hear_a_wish(wish::ahead);
  EXPECT_EQ(n.asked_now, 0U);
  EXPECT_GE(n.asked_soon, 1U);
  n.on_shelf = 1;
  n.all.balance.feed(n.worker);
  EXPECT_EQ(n.sent, 1U);
  n.hear_a_wish(wish::kept);
  EXPECT_EQ(n.asked_now, 1U);
}

}  // namespace
}  // namespace strata::cluster

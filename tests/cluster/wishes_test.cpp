// SPDX-License-Identifier: Apache-2.0
// A node that has told another one that it waits for work, and the moments in which it says so.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "cluster/protocols.hpp"
#include "strata/detail/fences.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

// A node without tasks, whose shelf holds nothing but numbers, next to node 1.
class bare_node final : public taskless_node, public mailer, public clock, public net::shelves {
 public:
  bare_node()
      : all(*this, *this, *this, {}, 1'000'000'000, [](node_id, const std::string&) {},
            {this, places_max}) {}

  void post(node_id to, kind k, std::span<const std::byte>, std::span<const std::byte>) override {
    EXPECT_EQ(to, 1);
    if (k != kind::tokens) return;
    ++sent;
    if (on_arrival) std::exchange(on_arrival, nullptr)();
  }
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 2; }
  [[nodiscard]] const membership& members() const noexcept override { return both; }
  void wait_for_room(node_id) override {}

  [[nodiscard]] std::int64_t now_ns() const override { return 0; }

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
  void hear_a_wish() {
    const std::array<std::uint32_t, 2> request{1, 1};
    EXPECT_TRUE(all.on_message(1, kind::steal, std::as_bytes(std::span(request))));
  }

  membership both{0, 2, {1}};
  unsigned on_shelf = 0;
  unsigned sent = 0;
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

// Tasks that stay on their node must not be shared at every push because another node is hungry.
TEST(wishes, wait_while_the_oldest_task_stays_here) {
  if (!detail::asymmetric_fences::available()) GTEST_SKIP() << "every push tends";
  bare_node n;
  n.hear_a_wish();
  detail::split_deque<detail::task>& deque = n.worker.deque;
  std::array<detail::task, 4> stays{};
  const auto push = [&](detail::task& t) { return deque.push(deque.next(), &t); };
  deque.ask();
  ASSERT_TRUE(push(stays[0]));
  ASSERT_EQ(deque.tend(), detail::push_outcome::shared);
  n.all.balance.feed(n.worker);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 1; i < stays.size(); ++i) EXPECT_FALSE(push(stays[i]));
    for (std::size_t i = stays.size() - 1; i > 0; --i) EXPECT_EQ(deque.pop(), &stays[i]);
  }
  // What comes after the oldest may be for others.
  EXPECT_EQ(deque.pop(), stays.data());
  EXPECT_TRUE(deque.asked());
  EXPECT_TRUE(push(stays[0]));
}

}  // namespace
}  // namespace strata::cluster

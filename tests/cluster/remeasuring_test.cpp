// SPDX-License-Identifier: Apache-2.0
// Which of the costs that are measured again and again are believed, and when they are measured.
#include "cluster/ways/remeasuring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cluster/ways/link_costs.hpp"
#include "cluster/words/codec.hpp"

namespace strata::cluster {
namespace {

constexpr std::uint8_t fast = 60;  // a stream of 1 GB/s

way_plan::measurement of_us(std::int64_t cost_us, node_id by = 0, node_id other = 1,
                            std::uint16_t network = 0) {
  return {by, {other, network, to_step(cost_us * 1000), fast}};
}

TEST(believed_costs, are_other_ones_when_two_surveys_say_so) {
  believed_costs c([](node_id n) { return n; });
  c.begin_with(of_us(100));
  c.begin_with(of_us(1));  // of two hosts the first counts
  for (const std::int64_t cost_us : {100, 140, 70, 1000, 100, 1000, 10, 1000, 100})
    EXPECT_FALSE(c.look_at(of_us(cost_us))) << cost_us;
  EXPECT_TRUE(c.changed().empty());
  EXPECT_FALSE(c.look_at(of_us(2000)));
  EXPECT_TRUE(c.look_at(of_us(8000)));
  // The one nearer to what was believed.
  ASSERT_EQ(c.changed().size(), 1U);
  EXPECT_EQ(c.changed()[0], of_us(2000));
  EXPECT_FALSE(c.look_at(of_us(8000))) << "it takes two again";
  EXPECT_FALSE(c.look_at(of_us(2000)));
  EXPECT_FALSE(c.look_at(of_us(100, 1, 0))) << "whoever of the two measures";
  EXPECT_TRUE(c.look_at(of_us(50)));
  EXPECT_EQ(c.changed()[0], of_us(100, 1, 0));
}

TEST(believed_costs, of_what_nobody_had_measured_are_believed_at_once) {
  believed_costs c([](node_id n) { return static_cast<std::uint16_t>(n / 2); });
  c.begin_with(of_us(100, 0, 2));
  EXPECT_TRUE(c.look_at(of_us(50, 0, 4)));
  EXPECT_FALSE(c.look_at(of_us(60, 5, 1))) << "the same two hosts";
  EXPECT_TRUE(c.look_at(of_us(100, 0, 2, 1))) << "another network";
  EXPECT_EQ(c.changed().size(), 2U);
}

TEST(believed_costs, are_no_more_than_a_plan_has_room_for) {
  believed_costs c([](node_id n) { return n; });
  std::size_t believed = 0;
  for (unsigned a = 0; a < 100; ++a) {
    for (unsigned b = 0; b < a; ++b)
      believed += c.look_at(of_us(10, static_cast<node_id>(a), static_cast<node_id>(b))) ? 1 : 0;
  }
  EXPECT_EQ(believed, way_plan::measured_max);
  EXPECT_EQ(c.changed().size(), way_plan::measured_max);
}

// ---- when ----

constexpr std::int64_t a_second_ns = 1'000'000'000;

using asked = std::vector<node_id>;

// Node 0 of a job that two nodes began and two more may come to; it measures nothing itself.
class ordering_node final : public mailer, public remeasuring::hands {
 public:
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return 4; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte>) override {
    EXPECT_EQ(k, kind::measure_again);
    asked_now.push_back(to);
    number = reader(head).take<std::uint32_t>();
  }
  void wait_for_room(node_id) override {}

  std::vector<node_id> measured_here() override { return {}; }
  std::optional<std::uint16_t> network_to(node_id) override { return 0; }
  bool post_directly(node_id, kind, std::span<const std::byte>,
                     std::span<const std::byte>) override {
    return true;
  }
  void on_costs(std::vector<way_plan::measurement>) override {}

  // Whom it has asked by then, who say that they have measured nothing.
  asked ask() {
    (void)all.on_time(now);
    return std::exchange(asked_now, {});
  }
  void answer(node_id n) {
    writer found;
    found.add(number);
    EXPECT_TRUE(all.on_message(n, kind::measured_again, reader(found.bytes()), now));
  }
  void come(node_id n) {
    members_.expect(n, false);
    members_.set(n, standing::present);
    all.members_have_changed(now);
  }
  void leave(node_id n) {
    members_.set(n, standing::left);
    all.members_have_changed(now);
  }

  std::int64_t now = 100 * a_second_ns;
  membership members_{0, {4, 2, 2}, {}, {}};
  asked asked_now;
  std::uint32_t number = 0;
  remeasuring all{*this, *this, believed_costs([](node_id n) { return n; }), 30 * a_second_ns, now};
};

TEST(remeasuring, follows_soon_when_somebody_has_come) {
  ordering_node n;
  EXPECT_EQ(n.ask(), asked{});
  n.come(2);
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), (asked{1, 2}));
  for (const node_id other : {1, 2}) n.answer(other);
  n.now += 29 * a_second_ns;
  EXPECT_EQ(n.ask(), asked{});
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), (asked{1, 2}));
}

TEST(remeasuring, follows_soon_when_somebody_has_come_while_others_measured) {
  ordering_node n;
  n.now += 30 * a_second_ns;
  EXPECT_EQ(n.ask(), asked{1});
  n.come(2);
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), asked{}) << "one at a time";
  n.answer(1);
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), (asked{1, 2}));
  for (const node_id other : {1, 2}) n.answer(other);
  n.now += 29 * a_second_ns;
  EXPECT_EQ(n.ask(), asked{}) << "once";
}

TEST(remeasuring, does_not_wait_for_who_has_left) {
  ordering_node n;
  n.come(2);
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), (asked{1, 2}));
  n.answer(2);
  n.leave(1);
  n.now += a_second_ns;
  EXPECT_EQ(n.ask(), asked{2});
}

}  // namespace
}  // namespace strata::cluster

// SPDX-License-Identifier: Apache-2.0
// What node 0 makes of what others want and offer while it cannot order anything.
#include "cluster/ways/rerouting.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "cluster/words/codec.hpp"

namespace strata::cluster {
namespace {

constexpr node_id all_numbers = 4;

// Node 0 of a job that two nodes began, to which a third has come.
class node_0 final : public mailer, public rerouting::hands {
 public:
  node_0() : members_(0, {all_numbers, 2, 2}, {}, {}), all(*this, first_plan(2), *this) {
    members_.expect(2, false);
    all.expect(2);
    members_.set(2, standing::present);
  }

  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return all_numbers; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte>) override {
    if (k == kind::next_ways && to == 1) ordered.push_back(unpack_plan(reader(head), all_numbers));
    if (k == kind::spared) told.emplace_back(to, reader(head).take<std::uint8_t>() != 0);
  }
  void wait_for_room(node_id) override {}

  // Nodes 1 and 2 share no network.
  routes ways_by(const way_plan& p) override {
    return p.ways(0, all_numbers, [](node_id a, node_id b) {
      return a == 0 || b == 0 ? std::optional(link(5'000)) : std::nullopt;
    });
  }
  bool has_connections_for(const routes&) override { return true; }
  void set_table(std::uint32_t, const routes&) override {}
  void change_way(node_id, node_id, std::uint32_t, bool) override {}
  void learn(const way_plan::words&) override {}
  void on_kept(node_id, kind, std::span<const std::byte>) override {}
  void on_spared(bool) override {}
  void on_ways() override {}
  void on_changed(const way_plan&) override {}
  void let_come(node_id) override {}

  void hear(node_id from, kind k) { EXPECT_TRUE(all.on_message(from, k, reader({}))); }
  membership members_;
  std::vector<way_plan> ordered;
  std::vector<std::pair<node_id, bool>> told;
  rerouting all;
};

// Perhaps that one is lost: nothing is ordered before more is known.
TEST(rerouting_orders, come_later_while_somebody_is_reached_by_nobody) {
  node_0 n;
  n.all.on_word({0, 2}, 1);
  n.hear(2, kind::forwards);
  n.hear(1, kind::spare_me);
  EXPECT_TRUE(n.ordered.empty());
  EXPECT_TRUE(n.told.empty());
  n.all.on_word({0, 2}, 2);
  ASSERT_EQ(n.ordered.size(), 1U);
  EXPECT_EQ(n.ordered[0].forwarders, (std::vector<node_id>{0, 2}));
}

}  // namespace
}  // namespace strata::cluster

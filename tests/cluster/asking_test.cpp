// SPDX-License-Identifier: Apache-2.0
// Whom an idle node asks for work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "cluster/protocols.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

// Node 0, which never has a task, next to others that have none for it. The first few are of its
// host.
class idle_node final : public taskless_node, public mailer, public clock {
 public:
  static constexpr node_id count = 24;
  static constexpr node_id of_its_host = 8;

  idle_node()
      : all(*this, *this, *this, {}, 1'000'000'000, [](node_id, const std::string&) {}, {}) {}

  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte>) override {
    if (k != kind::steal) return;
    const auto said = reader(head).take<std::array<wish, 2>>()[1];
    (said == wish::none ? asked : lifelines).push_back(to);
  }
  [[nodiscard]] node_id self() const noexcept override { return 0; }
  [[nodiscard]] node_id nodes() const noexcept override { return count; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void wait_for_room(node_id) override {}
  [[nodiscard]] std::int64_t now_ns() const override { return 1'000'000'000; }

  // Until it rests on its lifelines.
  void ask_in_vain() {
    asked.clear();
    lifelines.clear();
    all.balance.want_work();
    while (lifelines.empty()) {
      ASSERT_FALSE(asked.empty());
      ASSERT_TRUE(all.on_message(asked.back(), kind::nothing, {}));
    }
    // It is content again; what it gets does not matter here.
    const std::uint32_t load = 0;
    ASSERT_TRUE(all.on_message(lifelines[0], kind::tokens, std::as_bytes(std::span(&load, 1))));
  }
  [[nodiscard]] static bool is_near(node_id n) { return n < of_its_host; }

  std::vector<node_id> asked, lifelines;

 private:
  static std::vector<node_id> neighbours() {
    std::vector<node_id> near;
    for (node_id n = 1; n < of_its_host; ++n) near.push_back(n);
    return near;
  }
  membership members_{0, count, neighbours()};

 public:
  protocols all;
};

// However many neighbours it has: else work of another host came by lifelines alone.
TEST(asking, begins_with_the_same_host_and_goes_on_anywhere) {
  idle_node n;
  int far = 0;
  for (int round = 0; round < 100; ++round) {
    n.ask_in_vain();
    ASSERT_EQ(n.asked.size(), 4U);
    EXPECT_TRUE(std::all_of(n.asked.begin(), n.asked.begin() + 2, idle_node::is_near));
    far += std::any_of(n.asked.begin(), n.asked.end(),
                       [](node_id asked) { return !idle_node::is_near(asked); })
               ? 1
               : 0;
  }
  EXPECT_GT(far, 80) << "of 100, where two of three others are elsewhere";
}

}  // namespace
}  // namespace strata::cluster

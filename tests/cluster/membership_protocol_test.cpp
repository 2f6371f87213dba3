// SPDX-License-Identifier: Apache-2.0
// Who may say what about coming and leaving, and when.
#include "cluster/members/membership_protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cluster/words/kinds.hpp"
#include "taskless_node.hpp"

namespace strata::cluster {
namespace {

constexpr node_id capacity = 6, gone = 3, comes = 4, unknown = 5;

// A node of a job that began with four, of which node 3 has left; node 4 is expected.
class lone_node final : public taskless_node, public mailer, public membership_protocol::hands {
 public:
  explicit lone_node(node_id self)
      : members_(self, {capacity, static_cast<node_id>(std::max<unsigned>(4, self + 1U)), 4},
                 {gone}, {}),
        quiet(*this, *this, counts),
        all(*this, members_, counts, quiet, *this) {
    if (self != comes) members_.expect(comes, false);
  }

  [[nodiscard]] node_id self() const noexcept override { return members_.self(); }
  [[nodiscard]] node_id nodes() const noexcept override { return capacity; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void post(node_id to, kind k, std::span<const std::byte>, std::span<const std::byte>) override {
    said.emplace_back(to, k);
  }
  void wait_for_room(node_id) override {}

  void on_standing(node_id) override {}
  void keep_back(node_id n, bool kept) override { kept_back.emplace_back(n, kept); }
  void on_entered() override { ++entered; }
  [[nodiscard]] bool nothing_holds() override { return !held; }
  void last_words() override {}
  void on_stay() override { ++stayed; }
  void on_parted() override { ++parted; }

  void hear(node_id from, kind k) {
    const std::array<std::uint64_t, 2> numbers{};
    const auto payload =
        k == kind::left ? std::as_bytes(std::span(numbers)) : std::span<const std::byte>();
    EXPECT_TRUE(all.on_message(from, k, reader(payload)));
  }
  void refuses(node_id from, kind k) {
    const std::size_t before = said.size() + kept_back.size();
    EXPECT_THROW(hear(from, k), malformed)
        << "kind " << static_cast<unsigned>(k) << " from node " << from;
    EXPECT_EQ(said.size() + kept_back.size(), before);
  }
  void refuses_all(node_id from, std::initializer_list<kind> but = {}) {
    for (const kind k : {kind::arrive, kind::known, kind::leaving, kind::farewell, kind::kept_back,
                         kind::stays, kind::left, kind::parted}) {
      if (std::find(but.begin(), but.end(), k) == but.end()) refuses(from, k);
    }
  }
  [[nodiscard]] std::size_t times(kind k) const {
    return static_cast<std::size_t>(
        std::count_if(said.begin(), said.end(), [&](const auto& one) { return one.second == k; }));
  }

  membership members_;
  work_counts counts;
  quiescence quiet;
  membership_protocol all;
  std::vector<std::pair<node_id, kind>> said;
  std::vector<std::pair<node_id, bool>> kept_back;
  bool held = false;
  unsigned entered = 0, stayed = 0, parted = 0;
};

TEST(membership_protocol, refuses_what_is_out_of_turn) {
  lone_node n(1);
  n.refuses_all(0);  // it never leaves
  n.refuses_all(1);  // this node itself
  n.refuses_all(2, {kind::leaving});
  n.refuses_all(gone);
  n.refuses_all(comes, {kind::arrive});
  n.refuses_all(unknown);
  EXPECT_FALSE(n.all.on_message(2, kind::heartbeat, reader({})));
}

TEST(membership_protocol, hears_each_word_of_a_comer_and_a_leaver_once) {
  lone_node n(1);
  n.hear(comes, kind::arrive);
  EXPECT_TRUE(n.members_.works(comes));
  n.refuses(comes, kind::arrive);
  n.hear(comes, kind::leaving);
  n.refuses_all(comes, {kind::farewell});
  n.hear(comes, kind::farewell);
  EXPECT_EQ(n.kept_back.back(), std::pair(comes, true));
  n.refuses_all(comes, {kind::stays, kind::left});
  n.hear(comes, kind::stays);
  EXPECT_EQ(n.kept_back.back(), std::pair(comes, false));
  n.refuses_all(comes, {kind::farewell});
  n.hear(comes, kind::farewell);
  EXPECT_THROW(n.all.on_message(comes, kind::left, reader({})), malformed) << "without its counts";
}

TEST(membership_protocol, forgets_who_has_left) {
  lone_node n(0);
  n.hear(2, kind::leaving);
  n.hear(2, kind::farewell);
  n.hear(2, kind::left);
  EXPECT_EQ(n.members_.of(2), standing::left);
  EXPECT_EQ(n.said.back(), std::pair(node_id{2}, kind::parted));
  n.refuses_all(2);
}

TEST(membership_protocol, awaits_one_answer_of_each_while_it_leaves) {
  lone_node n(1);
  n.all.part();
  EXPECT_TRUE(n.said.empty()) << "it has not said that it leaves";
  n.all.begin_to_leave();
  n.all.begin_to_leave();
  EXPECT_EQ(n.times(kind::leaving), 2U) << "nodes 0 and 2";
  n.refuses_all(1);
  n.all.part();
  n.all.part();
  EXPECT_EQ(n.times(kind::farewell), 2U);
  n.hear(0, kind::kept_back);
  n.refuses_all(0);
  n.refuses(comes, kind::kept_back);
  n.held = true;
  n.hear(2, kind::kept_back);
  EXPECT_EQ(n.stayed, 1U);
  EXPECT_EQ(n.times(kind::stays), 2U);
  // Who comes meanwhile hears of it.
  n.hear(comes, kind::arrive);
  EXPECT_EQ(n.said.back(), std::pair(comes, kind::leaving));
  n.held = false;
  n.all.part();
  for (const node_id other : {node_id{0}, node_id{2}, comes}) n.hear(other, kind::kept_back);
  EXPECT_EQ(n.times(kind::left), 3U);
  n.refuses(0, kind::kept_back);
  n.hear(0, kind::parted);
  n.refuses(0, kind::parted);
  // Its connection has ended: it had heard.
  EXPECT_TRUE(n.all.on_lost(2));
  EXPECT_EQ(n.parted, 0U);
  n.hear(comes, kind::parted);
  EXPECT_EQ(n.parted, 1U);
}

TEST(membership_protocol, takes_part_when_all_know_it) {
  lone_node n(comes);
  EXPECT_FALSE(n.members_.works(comes));
  n.refuses(0, kind::known);
  n.all.come();
  EXPECT_EQ(n.said, (std::vector<std::pair<node_id, kind>>{{0, kind::arrive}}));
  n.refuses(1, kind::known);
  n.refuses_all(comes);
  n.hear(0, kind::known);
  n.refuses(0, kind::known);
  n.hear(2, kind::known);
  EXPECT_FALSE(n.members_.works(comes));
  n.hear(1, kind::known);
  EXPECT_EQ(n.entered, 1U);
  EXPECT_TRUE(n.members_.works(comes));
  EXPECT_EQ(n.times(kind::arrive), 3U);
  EXPECT_FALSE(n.all.on_lost(2)) << "that is a loss";
}

}  // namespace
}  // namespace strata::cluster

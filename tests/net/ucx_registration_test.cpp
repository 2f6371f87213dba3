// SPDX-License-Identifier: Apache-2.0
// Registered memory over UCX: transfers of any part of it use its handle, and UCX lets go of it
// when both its registration and what uses it have ended, whichever is first.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "ucx_blocks_support.hpp"

namespace strata::net::test {
namespace {

using registration = std::unique_ptr<transfers::registration>;

class ucx_registration : public ucx_blocks {
 protected:
  registration register_at(node_id n, std::span<std::byte> bytes) {
    registration r = of(*all_[n]).register_memory(bytes);
    EXPECT_NE(r, nullptr);
    return r;
  }
  // From node 0 to node 1, which knows it by that number.
  void begin(std::span<const std::byte> from, std::span<std::byte> into, std::uint64_t number) {
    ASSERT_TRUE(of(*all_[1]).expect(0, number, into));
    ASSERT_TRUE(of(*all_[0]).give(1, number, from, number));
  }
  void end(std::uint64_t number) {
    poll_until(
        [&] { return heard_[0].given.contains(number) && heard_[1].arrived.contains(number); });
    EXPECT_TRUE(heard_[0].given[number] && heard_[1].arrived[number]);
  }
  [[nodiscard]] std::size_t mapped(node_id n) const { return all_[n]->blocks_mapped(); }
};

INSTANTIATE_TEST_SUITE_P(ucx, ucx_registration, testing::Values("tcp", "all"), [](const auto& p) {
  return std::string(p.param == std::string("tcp") ? "sockets" : "any");
});

TEST_P(ucx_registration, serves_transfers_of_any_part) {
  constexpr std::size_t bytes = (4UL << 20) + 5;
  std::vector<std::byte> from = content_of(1, bytes);
  std::vector<std::byte> into(bytes);
  registration source = register_at(0, from);
  registration target = register_at(1, into);
  std::uint64_t number = 0;
  for (const auto& [offset, size] : {std::pair{0UL, bytes},
                                     {0UL, 1UL},
                                     {bytes - 1, 1UL},
                                     {4097UL, 131'072UL},
                                     {1UL, bytes - 1}}) {
    std::fill(into.begin(), into.end(), std::byte{0});
    ++number;
    begin(std::span(from).subspan(offset, size), std::span(into).subspan(offset, size), number);
    end(number);
    EXPECT_TRUE(strata::test::same(std::span(into).subspan(offset, size),
                                   std::span(from).subspan(offset, size)));
    EXPECT_EQ(source->uses(), number);
    EXPECT_EQ(target->uses(), number);
  }
  EXPECT_EQ(mapped(0), 1U);
  source.reset();
  target.reset();
  EXPECT_EQ(mapped(0) + mapped(1), 0U);
  // It goes on without.
  begin(from, into, 100);
  end(100);
  EXPECT_TRUE(strata::test::same(into, from));
}

// What is registered at one end only, or reaches beyond it.
TEST_P(ucx_registration, is_each_nodes_own) {
  std::vector<std::byte> from = content_of(1, 600'000);
  std::vector<std::byte> into(from.size());
  const registration source = register_at(0, std::span(from).first(300'000));
  begin(std::span(from).first(300'000), std::span(into).first(300'000), 1);
  end(1);
  EXPECT_EQ(source->uses(), 1U);
  begin(from, into, 2);
  end(2);
  EXPECT_EQ(source->uses(), 1U) << "not all of it is registered";
  EXPECT_TRUE(strata::test::same(into, from));
}

TEST_P(ucx_registration, may_overlap_another) {
  std::vector<std::byte> from = content_of(1, 900'000);
  std::vector<std::byte> into(from.size());
  registration left = register_at(0, std::span(from).first(600'000));
  registration right = register_at(0, std::span(from).last(600'000));
  EXPECT_EQ(mapped(0), 2U);
  begin(std::span(from).first(600'000), std::span(into).first(600'000), 1);
  begin(std::span(from).last(300'000), std::span(into).last(300'000), 2);
  end(1);
  end(2);
  EXPECT_EQ(left->uses(), 1U);
  EXPECT_EQ(right->uses(), 1U);
  EXPECT_TRUE(strata::test::same(into, from));
  // In the middle either will do; then the one that is left.
  const auto middle = std::span(from).subspan(350'000, 200'000);
  begin(middle, std::span(into).subspan(350'000, 200'000), 3);
  end(3);
  EXPECT_EQ(left->uses() + right->uses(), 3U);
  right.reset();
  const std::uint64_t before = left->uses();
  begin(middle, std::span(into).subspan(350'000, 200'000), 4);
  end(4);
  EXPECT_EQ(left->uses(), before + 1);
  EXPECT_EQ(mapped(0), 1U);
}

// So much that no socket holds it: some of it is still to come when some is there.
constexpr std::size_t much = std::size_t{48} << 20;

TEST_P(ucx_registration, ends_with_the_transfers_in_it) {
  std::vector<std::byte> from = content_of(1, much);
  std::vector<std::byte> into(much);
  registration source = register_at(0, from);
  registration target = register_at(1, into);
  begin(from, into, 1);
  poll_until([&] { return into[100'000] == from[100'000]; });
  EXPECT_TRUE(heard_[0].given.empty() && heard_[1].arrived.empty());
  EXPECT_EQ(target->uses(), 1U);
  source.reset();
  target.reset();
  EXPECT_EQ(mapped(0), 1U);
  EXPECT_EQ(mapped(1), 1U);
  // Registered anew meanwhile it is another one.
  source = register_at(0, from);
  EXPECT_EQ(mapped(0), 2U);
  EXPECT_EQ(source->uses(), 0U);
  end(1);
  EXPECT_EQ(mapped(0), 1U);
  EXPECT_EQ(mapped(1), 0U);
  EXPECT_TRUE(strata::test::same(into, from));
}

TEST_P(ucx_registration, ends_with_a_lost_peer) {
  std::vector<std::byte> from = content_of(1, much);
  std::vector<std::byte> into(much);
  registration target = register_at(1, into);
  begin(from, into, 1);
  poll_until([&] { return into[100'000] == from[100'000]; });
  all_[0].reset();
  poll_until([&] { return heard_[1].arrived.contains(1); });
  EXPECT_FALSE(heard_[1].arrived[1]);
  EXPECT_EQ(mapped(1), 1U);
  target.reset();
  EXPECT_EQ(mapped(1), 0U);
}

TEST_P(ucx_registration, may_outlive_its_node) {
  std::vector<std::byte> from = content_of(1, much);
  std::vector<std::byte> into(much);
  registration source = register_at(0, from);
  registration idle = register_at(0, into);
  registration target = register_at(1, into);
  begin(from, into, 1);
  poll_until([&] { return into[100'000] == from[100'000]; });
  target.reset();  // in use
  all_.clear();
  EXPECT_EQ(source->uses(), 1U);
  EXPECT_EQ(idle->uses(), 0U);
}

// Registered and ended by others while a thread sends.
TEST_P(ucx_registration, comes_and_goes_beside_transfers) {
  std::vector<std::byte> from = content_of(1, 2'000'000);
  std::vector<std::byte> into(from.size());
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (node_id n = 0; n < 2; ++n) {
    others.emplace_back([&, n] {
      while (!over.load(std::memory_order_relaxed)) {
        const std::span memory = n == 0 ? std::span(from) : std::span(into);
        const registration whole = of(*all_[n]).register_memory(memory);
        const registration part = of(*all_[n]).register_memory(memory.subspan(1000));
      }
    });
  }
  for (std::uint64_t number = 1; number <= 40; ++number) {
    std::fill(into.begin(), into.end(), std::byte{0});
    begin(from, into, number);
    end(number);
    EXPECT_TRUE(strata::test::same(into, from));
  }
  over.store(true, std::memory_order_relaxed);
  for (std::thread& t : others) t.join();
  EXPECT_EQ(mapped(0) + mapped(1), 0U);
}

}  // namespace
}  // namespace strata::net::test

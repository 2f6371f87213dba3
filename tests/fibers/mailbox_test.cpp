// SPDX-License-Identifier: Apache-2.0
// What is dropped into a mailbox is retrieved once, on its own node, with one signal for each item.
#include "strata/mailbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "sched/held_items.hpp"
#include "strata/fiber.hpp"

namespace strata::test {
namespace {

using detail::held_items;

TEST(held_items, are_counted_whoever_takes_them_out) {
  held_items all(2);
  constexpr auto a = held_items::of_worker(0), b = held_items::of_worker(1);
  all.come(100, a);
  all.come(50, a);
  all.go(1, 100, a);
  EXPECT_EQ(all.now().items, 1u);
  EXPECT_EQ(all.now().bytes, 50u);
  EXPECT_EQ(all.now().most_bytes, 150u);
  all.go(1, 50, b);
  EXPECT_EQ(all.now().items, 0u);
  EXPECT_EQ(all.now().bytes, 0u);
  // Large ones are known to all at once.
  constexpr auto large = static_cast<std::size_t>(held_items::part_max);
  for (int i = 0; i < 10; ++i) all.come(large, i % 2 == 0 ? a : held_items::nobody);
  EXPECT_EQ(all.now().bytes, 10 * large);
  for (int i = 0; i < 10; ++i) all.go(1, large, b);
  EXPECT_EQ(all.now().items, 0u);
  EXPECT_EQ(all.now().bytes, 0u);
  EXPECT_GE(all.now().most_bytes, 10 * large - 50);
  EXPECT_LE(all.now().most_bytes, 10 * large + large);
}

TEST(held_items, are_none_in_the_end) {
  constexpr unsigned workers = 4;
  constexpr std::size_t items = 10'000;
  held_items all(workers);
  {
    std::vector<std::jthread> threads;
    for (unsigned w = 0; w < workers; ++w) {
      threads.emplace_back([&all, w] {
        // Even ones bring what odd ones take: the numbers of one alone are below 0.
        const unsigned who = held_items::of_worker(w);
        for (std::size_t i = 0; i < items; ++i) w % 2 == 0 ? all.come(i, who) : all.go(1, i, who);
      });
    }
  }
  EXPECT_EQ(all.now().items, 0u);
  EXPECT_EQ(all.now().bytes, 0u);
}

// Items of many sizes that say who they are.
std::vector<std::uint32_t> item_of(std::uint32_t sender, std::uint32_t number) {
  std::vector<std::uint32_t> item(2 + (sender * 7 + number) % 50, sender ^ number);
  item[0] = sender;
  item[1] = number;
  return item;
}

struct dropper : threaded {
  global_ptr<mailbox> box;
  std::uint32_t self;
  std::uint32_t items;
  void start() {
    for (std::uint32_t i = 0; i < items; ++i) {
      const auto item = item_of(self, i);
      drop_in(box, item.data(), item.size() * sizeof(item[0]));
    }
    terminate();
  }
};

// Owns a mailbox; each signal retrieves one item.
struct owner : threaded {
  std::uint32_t senders;
  std::uint32_t items;
  std::atomic<std::uint32_t>* received;  // senders x items
  std::atomic<int>* wrong;
  slot_ptr done;
  std::atomic<std::uint32_t> count;
  mailbox box{to_sptr(ARRIVED)};

  void start() {
    count = 0;
    // Copies: once the last token is sent, the frame may end before this loop does.
    const std::uint32_t last = senders;
    const std::uint32_t each = items;
    const auto where = to_global(&box);
    for (std::uint32_t s = 0; s < last; ++s) token<dropper>(where, s, each);
  }
  void arrived() {
    // The signal follows the item.
    std::array<std::uint32_t, 64> item;
    const std::size_t words = retrieve_item(box, item.data(), sizeof item) / sizeof item[0];
    const auto expected = item_of(item[0], item[1]);
    *wrong += !std::equal(expected.begin(), expected.end(), item.begin(),
                          item.begin() + static_cast<std::ptrdiff_t>(words));
    received[item[0] * items + item[1]].fetch_add(1);
    const std::uint32_t all = senders * items;
    // From here on another firing may end the frame.
    if (count.fetch_add(1) + 1 < all) return;
    *wrong += box.size() != 0;
    sync(done);
    terminate();
  }
  fiber<&owner::arrived> ARRIVED{this, 1, 1};
};

class mailbox_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, mailbox_workers, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST_P(mailbox_workers, hand_out_what_was_dropped_in) {
  runtime rt(with_workers(GetParam()));
  prng random(seed());
  std::uint64_t all = 0;
  for (int round = 0; round < scaled(30, 8); ++round) {
    const auto senders = static_cast<std::uint32_t>(1 + random.below(12));
    const auto items = static_cast<std::uint32_t>(1 + random.below(60));
    std::vector<std::atomic<std::uint32_t>> received(senders * items);
    std::atomic<int> wrong{0};
    rt.run([&] {
      completion done;
      token<owner>(senders, items, received.data(), &wrong, done.sptr());
      done.wait();
    });
    EXPECT_EQ(wrong, 0);
    for (const auto& r : received) ASSERT_EQ(r, 1u);
    rt.wait_idle();
    ASSERT_EQ(rt.stats().live_frames, 0);
    // One signal, and so one firing, for each item.
    all += senders * items;
    ASSERT_EQ(rt.stats().total().fibers, all);
  }
}

class mailboxes : public ::testing::Test {
 protected:
  runtime rt{with_workers(1)};
};

TEST_F(mailboxes, keep_what_was_retrieved_too_small) {
  rt.run([] {
    completion arrived(3);
    mailbox box(arrived.sptr());
    EXPECT_EQ(box.size(), 0u);
    drop_in(to_global(&box), std::array<int, 4>{1, 2, 3, 4});
    EXPECT_EQ(box.size(), 1u);
    EXPECT_EQ(arrived.count(), 2u);
    int small = 0;
    EXPECT_THROW(retrieve_item(box, &small, sizeof small), misuse_error);
    EXPECT_EQ(box.size(), 1u);
    EXPECT_EQ((retrieve_item<std::array<int, 4>>(box)), (std::array<int, 4>{1, 2, 3, 4}));
    EXPECT_EQ(box.size(), 0u);
    // Smaller than the type it is asked for as.
    drop_in(to_global(&box), 5);
    EXPECT_THROW(retrieve_item<long>(box), misuse_error);
    // Nothing at all is an item too.
    drop_in(to_global(&box), nullptr, 0);
    arrived.wait();
  });
}

TEST_F(mailboxes, of_empty_items) {
  rt.run([] {
    completion arrived;
    mailbox box(arrived.sptr());
    drop_in(to_global(&box), nullptr, 0);
    arrived.wait();
    EXPECT_EQ(box.size(), 1u);
    EXPECT_EQ(retrieve_item(box, nullptr, 0), 0u);
    EXPECT_EQ(box.size(), 0u);
  });
}

TEST_F(mailboxes, say_that_they_are_empty) {
  rt.run([] {
    completion arrived;
    mailbox box(arrived.sptr());
    int item = 0;
    try {
      retrieve_item(box, &item, sizeof item);
      FAIL();
    } catch (const misuse_error& e) {
      EXPECT_NE(std::string(e.what()).find("empty"), std::string::npos) << e.what();
    }
    sync(arrived.sptr());
    arrived.wait();
  });
}

TEST_F(mailboxes, give_away_the_oldest_item_first) {
  rt.run([] {
    completion arrived(100);
    mailbox box(arrived.sptr());
    for (int i = 0; i < 100; ++i) drop_in(to_global(&box), i);
    arrived.wait();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(retrieve_item<int>(box), i);
  });
}

TEST_F(mailboxes, are_read_on_their_own_node_only) {
  options o = with_workers(1);
  o.node = 5;
  runtime elsewhere(o);
  rt.run([&] {
    completion arrived;
    mailbox box(arrived.sptr());
    const global_ptr<mailbox> address = to_global(&box);
    drop_in(address, 1);
    arrived.wait();
    elsewhere.run([&] {
      try {
        retrieve_item<int>(box);
        FAIL();
      } catch (const misuse_error& e) {
        EXPECT_NE(std::string(e.what()).find("node 0 retrieved on node 5"), std::string::npos)
            << e.what();
      }
      EXPECT_THROW(drop_in(address, 2), misuse_error);
    });
    EXPECT_EQ(retrieve_item<int>(box), 1);
  });
}

TEST_F(mailboxes, outside_a_runtime_are_misuse) { EXPECT_THROW(mailbox{slot_ptr()}, misuse_error); }

TEST_F(mailboxes, pass_on_that_their_slot_refuses) {
  rt.run([] {
    completion arrived;
    mailbox box(arrived.sptr());
    drop_in(to_global(&box), 1);
    EXPECT_THROW(drop_in(to_global(&box), 2), misuse_error);
    arrived.wait();
  });
}

}  // namespace
}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Several groups at once over the same endpoints, and members that run ahead; how groups are made
// and end.
#include <malloc.h>

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "group_support.hpp"
#include "strata/pthread.h"

namespace strata::test {
namespace {

// Each thread is in four groups over the same endpoints, and sends other messages besides; rows and
// columns of a square.
TEST_P(groups, do_not_disturb_each_other) {
  run([] {
    constexpr unsigned side = 4, n = side * side;
    with_endpoints(n, [&](unsigned me, endpoint& mine, const std::vector<endpoint_id>& list) {
      const unsigned row = me / side, column = me % side;
      std::vector<endpoint_id> in_row, in_column, backwards(list.rbegin(), list.rend());
      for (unsigned i = 0; i < side; ++i) {
        in_row.push_back(list[row * side + i]);
        in_column.push_back(list[i * side + column]);
      }
      mine.send_value(list[(me + 1) % n], 7, me);
      group all(mine, list), rows(mine, in_row), columns(mine, in_column), turned(mine, backwards);
      EXPECT_EQ(turned.rank(), n - 1 - me);
      for (int i = 0; i < scaled(30, 5); ++i) {
        const std::vector<unsigned> ranks = columns.all_gather(me);
        for (unsigned r = 0; r < side; ++r) EXPECT_EQ(ranks[r], r * side + column);
        EXPECT_EQ(rows.scan(1U, std::plus<>()), column + 1);
        EXPECT_EQ(turned.broadcast(me, 0), n - 1);
        EXPECT_EQ(all.all_reduce(1U, std::plus<>()), n);
        EXPECT_EQ(rows.broadcast(me, 2), row * side + 2);
        if (row % 2 == 0) {
          EXPECT_EQ(rows.all_reduce(me, std::plus<>()), row * 16 + 6);
        }
      }
      EXPECT_EQ(mine.receive_value<unsigned>(any_endpoint, 7), (me + n - 1) % n);
      EXPECT_FALSE(mine.probe().has_value());
    });
  });
}

TEST_P(groups, split_by_color_in_the_order_of_keys) {
  run([] {
    for (const unsigned n : {1U, 2U, 5U, 16U, 17U}) {
      in_group_of(n, [&](group& g) {
        const unsigned me = g.rank();
        // Every third one by itself, in no group; the others by parity, backwards.
        const std::optional<unsigned> color =
            me % 3 == 2 ? std::nullopt : std::optional<unsigned>(me % 2);
        std::optional<group> part = g.split(color, -static_cast<int>(me));
        ASSERT_EQ(part.has_value(), color.has_value());
        if (part) {
          std::vector<unsigned> with;
          for (unsigned i = n; i-- > 0;)
            if (i % 3 != 2 && i % 2 == me % 2) with.push_back(i);
          ASSERT_EQ(part->size(), with.size());
          EXPECT_EQ(with[part->rank()], me);
          EXPECT_EQ(part->all_gather(me), with);
          for (unsigned i = 0; i < with.size(); ++i)
            EXPECT_EQ(part->members()[i], g.members()[with[i]]);
        }
        EXPECT_EQ(g.all_reduce(1U, std::plus<>()), n);
        // Of one key: in the order of the ranks; and of a part, parts.
        std::optional<group> half = g.split(me % 2);
        EXPECT_EQ(half->rank(), me / 2);
        std::optional<group> quarter = half->split(half->rank() % 2);
        EXPECT_EQ(quarter->rank(), me / 4);
        EXPECT_EQ(quarter->broadcast(me, 0), me % 4);
        part.reset();
        half.reset();
        EXPECT_EQ(quarter->all_reduce(1U, std::plus<>()), quarter->size());
      });
    }
  });
}

// Rows and columns of a square, by which each hears of all.
TEST_P(groups, split_into_rows_and_columns) {
  run([] {
    constexpr unsigned side = 4;
    in_group_of(side * side, [&](group& g) {
      const unsigned row = g.rank() / side, column = g.rank() % side;
      std::optional<group> rows = g.split(row), columns = g.split(column);
      for (int i = 0; i < scaled(100, 10); ++i) {
        const unsigned in_row = rows->all_reduce(g.rank(), std::plus<>());
        EXPECT_EQ(columns->all_reduce(in_row, std::plus<>()), side * side * (side * side - 1) / 2);
      }
    });
  });
}

// Made at endpoints at which receives wait that take whatever comes, and others look for messages.
TEST_P(groups, leave_receives_of_the_program_alone_while_they_are_made) {
  run([] {
    with_endpoints(6, [](unsigned me, endpoint& mine, const std::vector<endpoint_id>& list) {
      int got = -1, of_one = -1;
      const auto room = [](int& x) { return std::as_writable_bytes(std::span(&x, 1)); };
      transfer whatever = mine.start_receive(room(got));
      transfer by_node = mine.start_receive(room(of_one), any_endpoint_on(node_id()));
      for (int i = 0; i < 3; ++i) {
        group all(mine, list);
        EXPECT_FALSE(whatever.test());
        EXPECT_FALSE(by_node.test());
        EXPECT_FALSE(mine.probe().has_value());
        all.barrier();
      }
      for (int i = 0; i < 2; ++i) mine.send_value(list[(me + 1) % 6], message_tag_max, i);
      whatever.wait();
      by_node.wait();
      EXPECT_EQ(got, 0);
      EXPECT_EQ(of_one, 1);
    });
    // One that is late takes what the program has sent, perhaps from behind what the group has.
    endpoint a, b, c;
    const std::vector<endpoint_id> both{a.id(), b.id()};
    thread early([&] { group(a, both).barrier(); });
    for (int i = 0; i < 10; ++i) this_thread::yield();
    c.send_value(b.id(), 1, 7);
    EXPECT_EQ(b.receive_value<int>(), 7);
    group(b, both).barrier();
    early.join();
  });
}

// One that only sends may run ahead, but not for ever.
TEST_P(groups, let_nobody_get_far_ahead) {
  run([] {
    std::array<std::atomic<int>, 5> done{};
    in_group_of(5, [&](group& g) {
      for (int i = 0; i < scaled(2000, 300); ++i) {
        EXPECT_EQ(g.broadcast(g.rank() == 1 ? i : -1, 1), i);
        done[g.rank()] = i;
        if (g.rank() == 1) {
          for (const auto& other : done) EXPECT_LE(i - other, 32);
        }
        if (g.rank() == 4 && i % 64 == 0) this_thread::yield();
      }
    });
  });
}

TEST_P(groups, are_made_and_ended_often) {
  run([] {
    with_endpoints(6, [](unsigned, endpoint& mine, const std::vector<endpoint_id>& list) {
      for (int i = 0; i < scaled(200, 30); ++i) {
        group g(mine, list);
        EXPECT_EQ(g.broadcast(i, 3), i);
        group moved = std::move(g);
        EXPECT_EQ(moved.all_reduce(i, std::plus<>()), 6 * i);
      }
    });
  });
}

TEST_P(groups, run_as_threads) {
  run([] {
    run_group(7, [](group& g) {
      EXPECT_EQ(g.size(), 7U);
      EXPECT_EQ(g.all_reduce(g.rank(), std::plus<>()), 21U);
    });
    static std::atomic<int> sum;
    sum = 0;
    run_group(
        3,
        [](group& g, int x, double y) {
          sum += static_cast<int>(g.rank()) * x;
          EXPECT_EQ(y, 0.5);
        },
        5, 0.5);
    EXPECT_EQ(sum, 15);
    // Each member is at its thread's own endpoint.
    run_group(5, [](group& g) {
      endpoint& mine = this_thread::endpoint();
      EXPECT_EQ(g.members()[g.rank()], mine.id());
      mine.send_value(g.members()[(g.rank() + 1) % 5], 1, g.rank());
      EXPECT_EQ(mine.receive_value<unsigned>(), (g.rank() + 4) % 5);
    });
    run_group(1, [](group& g) { g.barrier(); });
    EXPECT_THROW(run_group(0, [](group&) {}), misuse_error);
  });
  EXPECT_THROW(run_group(2, [](group&) {}), misuse_error);
}

// Else ten thousand members of one node had ten thousand lists of ten thousand.
TEST_P(groups, have_one_list_of_their_members_on_a_node) {
  run([] {
    constexpr unsigned n = 20;
    static std::array<const endpoint_id*, n> lists;
    run_group(n, [](group& g) {
      lists[g.rank()] = g.members().data();
      g.barrier();  // while all of them are there
    });
    for (const endpoint_id* const list : lists) EXPECT_EQ(list, lists[0]);
  });
}

TEST_P(groups, have_no_room_for_more_members_than_they_have) {
  run([] {
    constexpr unsigned n = 64;
    run_group(n, [](group& g) {
      const group pair = *g.split(g.rank() / 2);
      EXPECT_EQ(pair.size(), 2U);
      auto* const list = const_cast<endpoint_id*>(pair.members().data());
      EXPECT_LT(malloc_usable_size(list), n / 4 * sizeof(endpoint_id));
    });
  });
}

// As one whose function returns: it does not leave the group, and ends nobody else.
TEST_P(groups, let_members_leave_by_pthread_exit) {
  static std::atomic<unsigned> reached;
  reached = 0;
  bool has_gone_on = false;
  run([&] {
    run_group(4, [](group& g) {
      EXPECT_EQ(g.all_reduce(1U, std::plus<>()), 4U);
      ++reached;
      if (g.rank() % 2 == 0) strata_pthread_exit(nullptr);
    });
    has_gone_on = true;
  });
  EXPECT_EQ(reached, 4U);
  EXPECT_TRUE(has_gone_on);
}

}  // namespace
}  // namespace strata::test

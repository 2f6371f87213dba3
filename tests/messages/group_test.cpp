// SPDX-License-Identifier: Apache-2.0
// Operations of groups within one process, against plain loops.
#include "strata/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../sched/support.hpp"
#include "messages/tree.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::scaled;
using test::with_workers;

unsigned levels(unsigned n) { return static_cast<unsigned>(std::bit_width(n - 1)); }

// Calls f(rank, endpoint, list of all) in n threads of this process.
template <class F>
void with_endpoints(unsigned n, F&& f) {
  std::vector<endpoint> ends(n);
  std::vector<endpoint_id> list;
  for (const endpoint& e : ends) list.push_back(e.id());
  std::vector<thread> threads;
  for (unsigned i = 0; i < n; ++i) threads.emplace_back([&, i] { f(i, ends[i], list); });
  for (thread& t : threads) t.join();
}

// Calls f(group) in n threads of this process.
template <class F>
void in_group_of(unsigned n, F&& f) {
  with_endpoints(n, [&](unsigned rank, endpoint& mine, const std::vector<endpoint_id>& list) {
    group g(mine, list);
    EXPECT_EQ(g.rank(), rank);
    EXPECT_EQ(g.size(), n);
    f(g);
  });
}

class groups : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run(f);
  }
  // Of every size; where that takes long, of some.
  template <class F>
  static void in_all_sizes(F&& f) {
    run([&] {
      for (unsigned n = 1; n <= 17; n += scaled(1U, 1 + n / 4)) in_group_of(n, f);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(workers, groups, testing::Values(1U, 2U, 4U));

// The same on every member, without anybody telling.
std::uint64_t datum(std::uint64_t rank, std::uint64_t i) {
  std::uint64_t x = rank * 0x9E37'79B9'7F4A'7C15U + i * 0xBF58'476D'1CE4'E5B9U + 1;
  x ^= x >> 31;
  x *= 0x94D0'49BB'1331'11EBU;
  return x ^ (x >> 29);
}
std::vector<std::uint64_t> data(std::uint64_t rank, std::size_t n) {
  std::vector<std::uint64_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = datum(rank, i);
  return v;
}

// Associative and not commutative: products of matrices with entries of 64 bits.
struct matrix {
  std::uint64_t a = 1, b = 0, c = 0, d = 1;
  friend matrix operator*(const matrix& x, const matrix& y) {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
  }
  friend bool operator==(const matrix&, const matrix&) = default;
};
matrix matrix_of(std::uint64_t rank, std::uint64_t i) {
  return {datum(rank, 4 * i), datum(rank, 4 * i + 1), datum(rank, 4 * i + 2),
          datum(rank, 4 * i + 3)};
}
std::vector<matrix> matrices(std::uint64_t rank, std::size_t n) {
  std::vector<matrix> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = matrix_of(rank, i);
  return v;
}
// The product of ranks [0, last), element by element.
std::vector<matrix> product(unsigned last, std::size_t n) {
  std::vector<matrix> v(n);
  for (unsigned r = 0; r < last; ++r) {
    for (std::size_t i = 0; i < n; ++i) v[i] = v[i] * matrix_of(r, i);
  }
  return v;
}

// ---- the tree ----

TEST(trees, reach_everybody_once_in_few_levels) {
  using messages::tree;
  for (unsigned n = 1; n <= 70; ++n) {
    for (unsigned root = 0; root < n; ++root) {
      std::vector<unsigned> level(n, 0);
      unsigned edges = 0;
      for (unsigned r = 0; r < n; ++r) {
        const tree t(r, n, root);
        ASSERT_EQ(t.parent().has_value(), r != root);
        unsigned first = r, last = r + 1;
        for (const messages::subtree& child : t.children()) {
          ++edges;
          ASSERT_TRUE(child.last == first || child.first == last) << "beside what there is";
          first = std::min(first, child.first);
          last = std::max(last, child.last);
          const tree below(child.head, n, root);
          ASSERT_EQ(below.parent(), r);
          ASSERT_EQ(below.mine().first, child.first);
          ASSERT_EQ(below.mine().last, child.last);
        }
        ASSERT_EQ(t.mine().first, first);
        ASSERT_EQ(t.mine().last, last);
        ASSERT_LE(t.children().size(), levels(n));
        unsigned up = 0;
        for (unsigned at = r; at != root; at = tree(at, n, root).parent().value_or(root)) ++up;
        ASSERT_LE(up, levels(n));
      }
      ASSERT_EQ(edges, n - 1);
    }
  }
}

// ---- operations ----

TEST_P(groups, meet_at_a_barrier) {
  run([] {
    for (unsigned n = 1; n <= 17; ++n) {
      std::vector<std::atomic<unsigned>> phase(n);
      in_group_of(n, [&](group& g) {
        for (unsigned p = 1; p <= 20; ++p) {
          // Not atomically for others: the barrier makes it visible.
          phase[g.rank()].store(p, std::memory_order_relaxed);
          g.barrier();
          for (const auto& other : phase) {
            const unsigned seen = other.load(std::memory_order_relaxed);
            EXPECT_TRUE(seen == p || seen == p + 1) << seen << " at " << p;
          }
        }
      });
    }
  });
}

TEST_P(groups, broadcast_from_every_root) {
  in_all_sizes([](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
        std::vector<std::uint64_t> v = data(g.rank(), n);
        g.broadcast(v, root);
        EXPECT_EQ(v, data(root, n));
      }
      EXPECT_EQ(g.broadcast(datum(g.rank(), 9), root), datum(root, 9));
    }
    // In pieces: N times as much as one message may have, not divisible, and no bytes for some.
    for (const std::size_t n : {std::size_t{8192}, std::size_t{8193}, std::size_t{50'001}}) {
      const unsigned root = static_cast<unsigned>(n) % g.size();
      std::vector<std::uint64_t> v = data(g.rank(), n);
      g.broadcast(std::span(v), root);
      EXPECT_EQ(v, data(root, n));
    }
  });
}

TEST_P(groups, reduce_in_the_order_of_the_ranks) {
  in_all_sizes([](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
        const std::vector<matrix> mine = matrices(g.rank(), n);
        std::vector<matrix> result(g.rank() == root ? n : 0);
        g.reduce(mine, result, root, std::multiplies<>());
        if (g.rank() == root) {
          EXPECT_EQ(result, product(g.size(), n));
        }
      }
      const auto one = g.reduce(matrix_of(g.rank(), 0), root, std::multiplies<>());
      ASSERT_EQ(one.has_value(), g.rank() == root);
      if (one) {
        EXPECT_EQ(*one, product(g.size(), 1)[0]);
      }
      std::vector<matrix> in_place = matrices(g.rank(), 700);  // above 16 KiB
      g.reduce(in_place, in_place, root, std::multiplies<>());
      if (g.rank() == root) {
        EXPECT_EQ(in_place, product(g.size(), 700));
      }
    }
  });
}

TEST_P(groups, reduce_for_all) {
  in_all_sizes([](group& g) {
    // The last three are cut in pieces.
    for (const std::size_t n : {0, 1, 5, 512, 513, 1999}) {
      std::vector<matrix> v = matrices(g.rank(), n);
      g.all_reduce(v, std::multiplies<>());
      EXPECT_EQ(v, product(g.size(), n));
    }
    EXPECT_EQ(g.all_reduce(g.rank(), std::plus<>()), g.size() * (g.size() - 1) / 2);
    EXPECT_EQ(g.all_reduce(datum(g.rank(), 0),
                           [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); }),
              [&] {
                std::uint64_t most = 0;
                for (unsigned r = 0; r < g.size(); ++r) most = std::max(most, datum(r, 0));
                return most;
              }());
  });
}

TEST_P(groups, give_all_the_same_sum) {
  in_all_sizes([](group& g) {
    std::vector<double> v(3000);
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = 1.0 / static_cast<double>(1 + datum(g.rank(), i) % 1000);
    g.all_reduce(v, std::plus<>());
    const double one = g.all_reduce(v[g.rank()], std::plus<>());
    std::vector<double> first = v;
    g.broadcast(first, 0);
    EXPECT_EQ(v, first);
    EXPECT_EQ(one, g.broadcast(one, g.size() - 1));
  });
}

TEST_P(groups, scan) {
  in_all_sizes([](group& g) {
    for (const std::size_t n : {0, 1, 5, 700}) {
      std::vector<matrix> v = matrices(g.rank(), n);
      g.scan(v, std::multiplies<>());
      EXPECT_EQ(v, product(g.rank() + 1, n));
    }
    EXPECT_EQ(g.scan(1U, std::plus<>()), g.rank() + 1);
    const auto before = g.exclusive_scan(matrix_of(g.rank(), 0), std::multiplies<>());
    ASSERT_EQ(before.has_value(), g.rank() != 0);
    if (before) {
      EXPECT_EQ(*before, product(g.rank(), 1)[0]);
    }
  });
}

TEST_P(groups, gather_and_scatter) {
  in_all_sizes([](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      for (const std::size_t n :
           {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{2500}}) {
        if (n > 100 && root % 5 != 0) continue;
        std::vector<std::uint64_t> expected;
        for (unsigned r = 0; r < g.size(); ++r) {
          const auto theirs = data(r, n);
          expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
        std::vector<std::uint64_t> all(g.rank() == root ? g.size() * n : 0);
        g.gather(data(g.rank(), n), all, root);
        if (g.rank() == root) {
          EXPECT_EQ(all, expected);
        }
        std::vector<std::uint64_t> mine(n);
        g.scatter(all, mine, root);
        EXPECT_EQ(mine, data(g.rank(), n));
        std::vector<std::uint64_t> everywhere(g.size() * n);
        g.all_gather(mine, everywhere);
        EXPECT_EQ(everywhere, expected);
      }
      const std::vector<unsigned> ranks = g.gather(g.rank(), root);
      EXPECT_EQ(ranks.size(), g.rank() == root ? g.size() : 0);
      for (unsigned r = 0; r < ranks.size(); ++r) EXPECT_EQ(ranks[r], r);
    }
    const std::vector<std::uint64_t> all = g.all_gather(datum(g.rank(), 3));
    for (unsigned r = 0; r < g.size(); ++r) EXPECT_EQ(all[r], datum(r, 3));
  });
}

TEST_P(groups, gather_any_sizes) {
  const auto bytes_for = [](unsigned rank, unsigned root) {
    const std::uint64_t random = datum(rank, root);
    std::vector<std::byte> v(random % 3 == 0 ? 0 : random % 7 == 0 ? random % 50'000 : random % 99);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::byte>(datum(rank, i));
    return v;
  };
  in_all_sizes([&](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      const auto all = g.gather_any(bytes_for(g.rank(), root), root);
      ASSERT_EQ(all.size(), g.rank() == root ? g.size() : 0);
      for (unsigned r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], bytes_for(r, root));
    }
    EXPECT_EQ(g.gather_any({}, 0).size(), g.rank() == 0 ? g.size() : 0);  // nobody has anything
  });
}

TEST_P(groups, send_all_to_all) {
  in_all_sizes([](group& g) {
    for (const std::size_t n : {0, 1, 7, 32, 33, 2100}) {  // 256 bytes are the most that is packed
      std::vector<std::uint64_t> out(n * g.size()), in(n * g.size()), expected;
      for (unsigned to = 0; to < g.size(); ++to) {
        for (std::size_t i = 0; i < n; ++i) {
          out[to * n + i] = datum(g.rank() * 100 + to, i);
          expected.push_back(datum(to * 100 + g.rank(), i));
        }
      }
      g.all_to_all(out, in);
      EXPECT_EQ(in, expected);
    }
  });
}

// ---- what it costs ----

struct cost {
  std::uint64_t messages = 0;  // of the one that sends or receives most
  std::uint64_t all = 0;       // of all members
  unsigned chain = 0;
};

// Of one call of each; f(group) makes it.
template <class F>
cost cost_of(unsigned n, F&& f) {
  cost c;
  mutex m;
  in_group_of(n, [&](group& g) {
    g.barrier();
    const group_traffic before = g.traffic();
    f(g);
    const group_traffic after = g.traffic();
    const std::lock_guard lock(m);
    const std::uint64_t sent = after.messages_sent - before.messages_sent;
    c.messages = std::max({c.messages, sent, after.messages_received - before.messages_received});
    c.all += sent;
    c.chain = std::max(c.chain, after.longest_chain);
  });
  return c;
}

TEST(groups_of_one_process, take_a_logarithm_of_rounds) {
  runtime rt(with_workers(2));
  rt.run([] {
    for (const unsigned n : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 16U, 31U, 32U, 33U, 64U, 100U, 200U}) {
      const unsigned log = levels(n), root = n / 3;
      const auto expect = [&](const char* what, const cost& c, unsigned messages, unsigned chain,
                              std::uint64_t all) {
        EXPECT_LE(c.messages, messages) << what << " of " << n;
        EXPECT_LE(c.chain, chain) << what << " of " << n;
        EXPECT_LE(c.all, all) << what << " of " << n;
      };
      const auto plus = std::plus<>();
      in_group_of(n, [&](group& g) { EXPECT_LE(g.traffic().messages_sent, log); });
      expect("barrier", cost_of(n, [](group& g) { g.barrier(); }), log, log, n * log);
      expect("broadcast", cost_of(n, [&](group& g) { (void)g.broadcast(1, root); }), log, log,
             n - 1);
      expect("broadcast in pieces",
             cost_of(n,
                     [&](group& g) {
                       std::vector<std::byte> v(100'000);
                       g.broadcast(v, root);
                     }),
             3 * log, 2 * log, n + 2 * n * log);
      expect("reduce", cost_of(n, [&](group& g) { g.reduce(1, root, plus); }), log, log, n - 1);
      const unsigned exact = std::has_single_bit(n) ? log : log - 1;  // floor
      const unsigned pairing = std::has_single_bit(n) ? 0 : 2;
      expect("all_reduce", cost_of(n, [&](group& g) { (void)g.all_reduce(1, plus); }), exact + 1,
             exact + pairing, n * (exact + 1));
      expect("all_reduce in pieces",
             cost_of(n,
                     [&](group& g) {
                       std::vector<int> v(10'000);
                       g.all_reduce(v, plus);
                     }),
             2 * exact + 1, 2 * exact + pairing, 2 * n * (exact + 1));
      expect("scan", cost_of(n, [&](group& g) { (void)g.scan(1, plus); }), log, log, n * log);
      expect("gather", cost_of(n, [&](group& g) { (void)g.gather(1, root); }), log, log, n - 1);
      expect("gather_any", cost_of(n, [&](group& g) { (void)g.gather_any(bytes_of(root), root); }),
             2 * log, 2 * log, 2 * (n - 1));
      expect("all_gather", cost_of(n, [](group& g) { (void)g.all_gather(1); }), 2 * log, log,
             2 * n * log);
      expect("scatter",
             cost_of(n,
                     [&](group& g) {
                       std::vector<int> all(n);
                       std::array<int, 1> mine;
                       g.scatter(all, mine, root);
                     }),
             log, log, n - 1);
      const auto to_all = [](std::size_t block) {
        return [block](group& g) {
          std::vector<std::byte> out(block * g.size()), in(block * g.size());
          g.all_to_all(out, in);
        };
      };
      expect("all_to_all", cost_of(n, to_all(8)), log + 1, log + 1, n * (log + 1));
      expect("all_to_all of much", cost_of(n, to_all(300)), n - 1, n - 1,
             std::uint64_t{n} * (n - 1));
    }
  });
}

// ---- several at once ----

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
    run_group(1, [](group& g) { g.barrier(); });
    EXPECT_THROW(run_group(0, [](group&) {}), misuse_error);
  });
  EXPECT_THROW(run_group(2, [](group&) {}), misuse_error);
}

// ---- errors ----

// What each member's call of f throws: its rank's text, or "fine".
template <class F>
std::vector<std::string> outcomes(unsigned n, F&& f) {
  std::vector<std::string> all(n);
  with_endpoints(n, [&](unsigned rank, endpoint& own, const std::vector<endpoint_id>& list) {
    std::string& mine = all[rank];
    try {
      group g(own, list);
      f(g);
      mine = "fine";
    } catch (const group_error& e) {
      mine = std::string("disagree: ") + e.what();
    } catch (const member_left_error& e) {
      EXPECT_LT(e.member(), n);
      EXPECT_EQ(e.which(), list[e.member()]);
      mine = std::string("left: ") + e.what();
    } catch (const std::exception& e) {
      mine = e.what();
    }
  });
  return all;
}

TEST_P(groups, tell_of_sizes_that_do_not_fit) {
  run([] {
    for (const unsigned n : {2U, 3U, 8U, 13U}) {
      for (unsigned odd = 0; odd < n; ++odd) {
        // Everybody gets to know, some of them from others.
        const auto all = outcomes(n, [&](group& g) {
          std::vector<int> v(g.rank() == odd ? 3 : 2);
          for (int i = 0; i < 3; ++i) g.all_reduce(v, std::plus<>());
        });
        for (const std::string& what : all) EXPECT_NE(what, "fine");
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& what) {
          return what.starts_with("disagree: members of a group disagree: member ");
        }));
        // In large messages, which nobody has received when the disagreement is found.
        for (const std::string& what : outcomes(n, [&](group& g) {
               std::vector<std::byte> v(g.rank() == odd ? 300'000 : 200'000);
               g.broadcast(v, 0);
               g.barrier();
             }))
          EXPECT_NE(what, "fine");
      }
    }
  });
}

TEST_P(groups, tell_of_different_operations) {
  run([] {
    const auto all = outcomes(4, [](group& g) {
      if (g.rank() == 2) {
        (void)g.all_reduce(1, std::plus<>());
      } else {
        g.barrier();
      }
      g.barrier();
    });
    for (const std::string& what : all) EXPECT_NE(what, "fine");
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const std::string& what) {
      return what.find("barrier (operation 1") != std::string::npos &&
             what.find("all_reduce (operation 1") != std::string::npos;
    })) << all[0];
    for (const std::string& what : outcomes(3, [](group& g) {
           (void)g.broadcast(g.rank(), g.rank() == 1 ? 1 : 0);
           g.barrier();
         }))
      EXPECT_NE(what, "fine");
  });
}

TEST_P(groups, tell_of_a_member_that_leaves) {
  run([] {
    for (const unsigned n : {2U, 5U, 9U}) {
      const auto all = outcomes(n, [&](group& g) {
        g.barrier();
        if (g.rank() == 1) throw std::out_of_range("a member's own trouble");
        for (;;) g.barrier();
      });
      for (unsigned r = 0; r < n; ++r) {
        if (r == 1) {
          EXPECT_EQ(all[r], "a member's own trouble");
        } else {
          EXPECT_TRUE(all[r].starts_with("left: member 1 has left: ")) << all[r];
        }
      }
    }
    const auto all = outcomes(6, [](group& g) {
      if (g.rank() == 4) {
        g.leave("enough");
        EXPECT_THROW(g.barrier(), member_left_error);
        EXPECT_THROW(g.barrier(), member_left_error);
        return;
      }
      const std::vector<std::byte> mine(100'000);
      std::vector<std::byte> everybody(600'000);
      for (;;) g.all_gather(mine, everybody);
    });
    for (unsigned r = 0; r < 6; ++r)
      EXPECT_EQ(all[r], r == 4 ? "fine" : "left: member 4 has left: enough");
  });
}

TEST_P(groups, pass_on_what_an_operation_throws) {
  run([] {
    const auto all = outcomes(7, [](group& g) {
      std::vector<int> v(10'000, 1);
      g.all_reduce(v, [](int a, int b) {
        if (a + b == 4) throw std::domain_error("four");
        return a + b;
      });
      g.barrier();
    });
    for (const std::string& what : all) {
      EXPECT_TRUE(what == "four" || (what.starts_with("left: ") && what.ends_with("four"))) << what;
    }
  });
}

TEST_P(groups, refuse_misuse) {
  run([] {
    endpoint a, b;
    EXPECT_THROW(group(a, {b.id()}), misuse_error);
    EXPECT_THROW(group(a, {a.id(), b.id(), a.id()}), misuse_error);
    EXPECT_THROW(group(a, {}), misuse_error);
    {
      group alone(a, {a.id()});
      EXPECT_THROW((void)alone.broadcast(1, 1), misuse_error);
      EXPECT_THROW(alone.barrier(), member_left_error);
    }
    {
      group alone(a, {a.id()});
      std::vector<int> out(3), in(4);
      EXPECT_THROW(alone.all_to_all(out, in), misuse_error);
    }
    // Lists of different members that have the same neighbours.
    endpoint c;
    std::atomic<int> told{0};
    const auto make = [&](endpoint& mine, std::vector<endpoint_id> list) {
      return thread([&mine, list, &told] {
        try {
          const group g(mine, list);
        } catch (const group_error&) {
          ++told;
        }
      });
    };
    std::array threads{make(a, {a.id(), b.id(), c.id()}), make(b, {a.id(), b.id(), c.id()}),
                       make(c, {b.id(), c.id(), a.id()})};
    for (thread& t : threads) t.join();
    EXPECT_EQ(told, 3);
  });
}

TEST_P(groups, rethrow_what_a_thread_of_run_group_throws) {
  run([] {
    try {
      run_group(5, [](group& g) {
        if (g.rank() == 3) throw std::out_of_range("the first");
        for (;;) g.barrier();
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "the first");
    }
  });
}

}  // namespace

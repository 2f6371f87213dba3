// SPDX-License-Identifier: Apache-2.0
// What the operations of groups cost: the trees are low, and the messages few.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <mutex>
#include <vector>

#include "group_support.hpp"
#include "messages/groups/tree.hpp"

namespace strata::test {
namespace {

unsigned levels(unsigned n) { return static_cast<unsigned>(std::bit_width(n - 1)); }

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
      // Little and much.
      for (const std::size_t block : {1, 40}) {
        expect("reduce_scatter",
               cost_of(n,
                       [&](group& g) {
                         const std::vector<int> all(block * n);
                         std::vector<int> mine(block);
                         g.reduce_scatter(all, mine, plus);
                       }),
               exact + 1, exact + pairing, n * (exact + 1));
      }
      expect("scan", cost_of(n, [&](group& g) { (void)g.scan(1, plus); }), log, log, n * log);
      expect("exclusive_scan", cost_of(n, [&](group& g) { (void)g.exclusive_scan(1, plus); }), log,
             log, n * log);
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
      expect(
          "scatter_any",
          cost_of(n,
                  [&](group& g) { (void)g.scatter_any(std::vector(n, std::vector(3, 1)), root); }),
          2 * log, 2 * log, 2 * (n - 1));
      expect("all_gather_any",
             cost_of(n, [](group& g) { (void)g.all_gather_any(std::vector(g.rank(), 1)); }),
             4 * log, 2 * log, 4 * n * log);
      expect("split", cost_of(n, [](group& g) { (void)g.split(g.rank() % 3); }), 3 * log, 2 * log,
             3 * n * log);
      const auto to_all = [](std::size_t block) {
        return [block](group& g) {
          std::vector<std::byte> out(block * g.size()), in(block * g.size());
          g.all_to_all(out, in);
        };
      };
      expect("all_to_all", cost_of(n, to_all(8)), log + 1, log + 1, n * (log + 1));
      expect("all_to_all of much", cost_of(n, to_all(300)), n - 1, n - 1,
             std::uint64_t{n} * (n - 1));
      // Whether all parts are small, and then the parts, or their sizes before them.
      const auto parts_to_all = [n](std::size_t bytes) {
        return [n, bytes](group& g) {
          (void)g.all_to_all_any(std::vector(n, std::vector<std::byte>(bytes)));
        };
      };
      const unsigned before = exact + 1 + log;
      expect("all_to_all_any", cost_of(n, parts_to_all(256)), before, exact + pairing + log,
             std::uint64_t{n} * before);
      expect("all_to_all_any of much", cost_of(n, parts_to_all(257)), before + n - 1,
             exact + pairing + log + n - 1, std::uint64_t{n} * (before + n - 1));
      expect("all_to_all_any of nothing", cost_of(n, parts_to_all(0)), before,
             exact + pairing + log, std::uint64_t{n} * before);
    }
  });
}

}  // namespace
}  // namespace strata::test

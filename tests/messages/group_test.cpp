// SPDX-License-Identifier: Apache-2.0
// Operations of groups within one process, against plain loops.
#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "group_data.hpp"
#include "group_support.hpp"

namespace strata::test {
namespace {

INSTANTIATE_TEST_SUITE_P(workers, groups, testing::Values(1U, 2U, 4U));

// Products of matrices with entries of 64 bits.
struct matrix {
  std::uint64_t a = 1, b = 0, c = 0, d = 1;
  static matrix of(std::uint64_t rank, std::uint64_t i) {
    return {datum(rank, 4 * i), datum(rank, 4 * i + 1), datum(rank, 4 * i + 2),
            datum(rank, 4 * i + 3)};
  }
  friend matrix operator*(const matrix& x, const matrix& y) {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
  }
  friend bool operator==(const matrix&, const matrix&) = default;
};

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

TEST_P(groups, gather_truth_values) {
  in_all_sizes([](group& g) {
    const auto of = [](unsigned rank) { return rank % 3 == 0; };
    std::vector<bool> expected;
    for (unsigned rank = 0; rank < g.size(); ++rank) expected.push_back(of(rank));
    EXPECT_EQ(g.all_gather(of(g.rank())), expected);
    const unsigned root = g.size() - 1;
    EXPECT_EQ(g.gather(of(g.rank()), root), g.rank() == root ? expected : std::vector<bool>());
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
        const std::vector<matrix> mine = factors<matrix>(g.rank(), n);
        std::vector<matrix> result(g.rank() == root ? n : 0);
        g.reduce(mine, result, root, std::multiplies<>());
        if (g.rank() == root) {
          EXPECT_EQ(result, product<matrix>(g.size(), n));
        }
      }
      const auto one = g.reduce(matrix::of(g.rank(), 0), root, std::multiplies<>());
      ASSERT_EQ(one.has_value(), g.rank() == root);
      if (one) {
        EXPECT_EQ(*one, product<matrix>(g.size(), 1)[0]);
      }
      std::vector<matrix> in_place = factors<matrix>(g.rank(), 700);  // above 16 KiB
      g.reduce(in_place, in_place, root, std::multiplies<>());
      if (g.rank() == root) {
        EXPECT_EQ(in_place, product<matrix>(g.size(), 700));
      }
    }
  });
}

TEST_P(groups, reduce_for_all) {
  in_all_sizes([](group& g) {
    // The last three are cut in pieces.
    for (const std::size_t n : {0, 1, 5, 512, 513, 1999}) {
      std::vector<matrix> v = factors<matrix>(g.rank(), n);
      g.all_reduce(v, std::multiplies<>());
      EXPECT_EQ(v, product<matrix>(g.size(), n));
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

// Factors of which block r is rank r's: those that `rank` has for all.
std::vector<matrix> factors_for_all(unsigned rank, unsigned members, std::size_t n) {
  return factors<matrix>(rank, n * members);
}
// And the block of `rank` of the product of all.
std::vector<matrix> block_of_product(unsigned rank, unsigned members, std::size_t n) {
  const std::vector<matrix> all = product<matrix>(members, n * members);
  return {all.begin() + static_cast<std::ptrdiff_t>(n * rank),
          all.begin() + static_cast<std::ptrdiff_t>(n * (rank + 1))};
}

TEST_P(groups, reduce_to_a_block_for_each) {
  in_all_sizes([](group& g) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{40}}) {
      const std::vector<matrix> before = factors_for_all(g.rank(), g.size(), n);
      const std::vector<matrix> expected = block_of_product(g.rank(), g.size(), n);
      std::vector<matrix> all = before, mine(n);
      g.reduce_scatter(all, mine, std::multiplies<>());
      EXPECT_EQ(mine, expected);
      EXPECT_EQ(all, before);
      // Within what is given, at each place in turn.
      const std::size_t place = n * ((g.rank() + 1) % g.size());
      g.reduce_scatter(all, std::span(all).subspan(place, n), std::multiplies<>());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             all.begin() + static_cast<std::ptrdiff_t>(place)));
    }
    const auto one = g.reduce_scatter(factors_for_all(g.rank(), g.size(), 1), std::multiplies<>());
    EXPECT_EQ(one, block_of_product(g.rank(), g.size(), 1)[0]);
    // How many send to this one, where each sends to those whose rank its own divides.
    std::vector<unsigned> sends(g.size());
    for (unsigned to = 0; to < g.size(); ++to) sends[to] = to % (g.rank() + 1) == 0 ? 1 : 0;
    unsigned expected = 0;
    for (unsigned from = 0; from < g.size(); ++from) expected += g.rank() % (from + 1) == 0 ? 1 : 0;
    EXPECT_EQ(g.reduce_scatter(sends, std::plus<>()), expected);
  });
}

TEST_P(groups, scan) {
  in_all_sizes([](group& g) {
    for (const std::size_t n : {0, 1, 5, 700}) {
      std::vector<matrix> v = factors<matrix>(g.rank(), n);
      g.scan(v, std::multiplies<>());
      EXPECT_EQ(v, product<matrix>(g.rank() + 1, n));
    }
    EXPECT_EQ(g.scan(1U, std::plus<>()), g.rank() + 1);
    for (const std::size_t n : {0, 1, 5, 700}) {
      const std::vector<matrix> mine = factors<matrix>(g.rank(), n);
      // At rank 0 it stays: what the program would have there, the product of nothing.
      std::vector<matrix> result(n), in_place = mine;
      g.exclusive_scan(mine, result, std::multiplies<>());
      EXPECT_EQ(result, product<matrix>(g.rank(), n));
      g.exclusive_scan(in_place, in_place, std::multiplies<>());
      EXPECT_EQ(in_place, g.rank() == 0 ? mine : product<matrix>(g.rank(), n));
    }
    const auto before = g.exclusive_scan(matrix::of(g.rank(), 0), std::multiplies<>());
    ASSERT_EQ(before.has_value(), g.rank() != 0);
    if (before) {
      EXPECT_EQ(*before, product<matrix>(g.rank(), 1)[0]);
    }
  });
}

TEST_P(groups, gather_and_scatter) {
  in_all_sizes([](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      for (const std::size_t n :
           {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{2500}}) {
        if (n > 100 && root % 5 != 0) continue;
        const std::vector<std::uint64_t> expected = data_of_all(g.size(), n);
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

// How many numbers `from` has for `to`: often none, now and then many.
std::size_t count_for(unsigned from, unsigned to, std::size_t most) {
  const std::uint64_t random = datum(from * 100 + to, most);
  return random % 3 == 0 ? 0 : random % (random % 7 == 0 ? 9'000 : most + 1);
}
std::vector<std::uint64_t> numbers_for(unsigned from, unsigned to, std::size_t most) {
  return data(from * 100 + to, count_for(from, to, most));
}

TEST_P(groups, gather_any_numbers_of_values) {
  in_all_sizes([](group& g) {
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{30}}) {
      for (unsigned root = 0; root < g.size(); root += 1 + g.size() / 4) {
        const auto at_root = g.gather_any(numbers_for(g.rank(), root, most), root);
        ASSERT_EQ(at_root.size(), g.rank() == root ? g.size() : 0);
        for (unsigned r = 0; r < at_root.size(); ++r)
          EXPECT_EQ(at_root[r], numbers_for(r, root, most));
      }
      const auto all = g.all_gather_any(numbers_for(g.rank(), 99, most));
      ASSERT_EQ(all.size(), g.size());
      for (unsigned r = 0; r < g.size(); ++r) EXPECT_EQ(all[r], numbers_for(r, 99, most));
    }
    const std::vector<std::byte> bytes(g.rank() * 3, static_cast<std::byte>(g.rank()));
    const std::vector<std::vector<std::byte>> all = g.all_gather_any(bytes);
    for (unsigned r = 0; r < g.size(); ++r)
      EXPECT_EQ(all[r], std::vector<std::byte>(r * 3, static_cast<std::byte>(r)));
  });
}

TEST_P(groups, scatter_any_numbers_of_values) {
  in_all_sizes([](group& g) {
    for (unsigned root = 0; root < g.size(); ++root) {
      for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{30}}) {
        std::vector<std::vector<std::uint64_t>> parts;
        for (unsigned to = 0; g.rank() == root && to < g.size(); ++to)
          parts.push_back(numbers_for(root, to, most));
        EXPECT_EQ(g.scatter_any(parts, root), numbers_for(root, g.rank(), most));
        // Of what is somewhere else.
        const std::vector<std::span<const std::uint64_t>> views(parts.begin(), parts.end());
        EXPECT_EQ(g.scatter_any(views, root), numbers_for(root, g.rank(), most));
      }
    }
  });
}

TEST_P(groups, send_any_numbers_of_values_to_all) {
  in_all_sizes([](group& g) {
    const auto exchange = [&](auto&& part) {
      std::vector<std::vector<std::uint64_t>> parts;
      for (unsigned to = 0; to < g.size(); ++to) parts.push_back(part(g.rank(), to));
      const auto in = g.all_to_all_any(parts);
      ASSERT_EQ(in.size(), g.size());
      for (unsigned from = 0; from < g.size(); ++from) EXPECT_EQ(in[from], part(from, g.rank()));
    };
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{32}}) {
      exchange([&](unsigned from, unsigned to) {  // small ones alone, and some of 256 bytes
        return data(from * 100 + to, datum(from, to) % (most + 1));
      });
      exchange([&](unsigned from, unsigned to) { return numbers_for(from, to, most); });
    }
    // One large part, of which the others know nothing.
    exchange([&](unsigned from, unsigned to) {
      return data(from * 100 + to, from == 0 && to + 1 == g.size() ? 33 : 0);
    });
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

}  // namespace
}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
#include "program_groups.hpp"

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "../common/sampled.hpp"
#include "../common/unreadable.hpp"
#include "group_data.hpp"
#include "strata/group.hpp"
#include "strata/serialize.hpp"

namespace {

using namespace strata;
using test::data;
using test::data_of_all;
using test::datum;
using test::factors;
using test::product;
using test::require;
using test::unreadable;

// x -> factor x + summand, one after the other.
struct affine {
  std::uint64_t factor = 1, summand = 0;
  static affine of(std::uint64_t rank, std::uint64_t i) {
    return {datum(rank, i), datum(rank, i + 1)};
  }
  friend affine operator*(const affine& f, const affine& g) {
    return {f.factor * g.factor, f.summand * g.factor + g.summand};
  }
  friend bool operator==(const affine&, const affine&) = default;
};

void one_size(group& g, std::size_t n) {
  const unsigned size = g.size(), root = static_cast<unsigned>(n + 1) % size;
  const bool is_root = g.rank() == root;
  const std::vector<std::uint64_t> everything = data_of_all(size, n);
  std::vector<std::uint64_t> v = data(g.rank(), n);
  g.broadcast(v, root);
  require(v == data(root, n), "broadcast");

  std::vector<affine> m = factors<affine>(g.rank(), n), result(is_root ? n : 0);
  g.reduce(m, result, root, std::multiplies<>());
  require(!is_root || result == product<affine>(size, n), "reduce");
  g.all_reduce(m, std::multiplies<>());
  require(m == product<affine>(size, n), "all_reduce");
  m = factors<affine>(g.rank(), n);
  g.scan(m, std::multiplies<>());
  require(m == product<affine>(g.rank() + 1, n), "scan");
  m = factors<affine>(g.rank(), n);
  std::vector<affine> before(n);
  g.exclusive_scan(m, before, std::multiplies<>());
  require(before == product<affine>(g.rank(), n), "exclusive_scan");
  m = factors<affine>(g.rank(), n * size);
  g.reduce_scatter(m, before, std::multiplies<>());
  const std::vector<affine> of_all = product<affine>(size, n * size);
  require(
      std::equal(before.begin(), before.end(), of_all.begin() + static_cast<long>(n * g.rank())),
      "reduce_scatter");

  std::vector<std::uint64_t> all(is_root ? n * size : 0), mine(n), everywhere(n * size);
  g.gather(data(g.rank(), n), all, root);
  require(!is_root || all == everything, "gather");
  g.scatter(all, mine, root);
  require(mine == data(g.rank(), n), "scatter");
  g.all_gather(mine, everywhere);
  require(everywhere == everything, "all_gather");

  const auto parts = g.gather_any(bytes_of(mine).first(n * g.rank() / size), root);
  require(parts.size() == (is_root ? size : 0), "gather_any: how many");
  for (unsigned r = 0; r < parts.size(); ++r) {
    const auto theirs = data(r, n);
    const auto expected = bytes_of(theirs).first(n * r / size);
    require(std::equal(parts[r].begin(), parts[r].end(), expected.begin(), expected.end()),
            "gather_any");
  }

  const auto part = [n, size](unsigned from, unsigned to) {
    return data(from * 1000 + to, n * (from + to) / size);
  };
  std::vector<std::vector<std::uint64_t>> mine_for_all;
  for (unsigned to = 0; to < size; ++to) mine_for_all.push_back(part(g.rank(), to));
  require(g.scatter_any(mine_for_all, root) == part(root, g.rank()), "scatter_any");
  const auto from_all = g.all_to_all_any(mine_for_all);
  const auto first_of_all = g.all_gather_any(part(g.rank(), 0));
  require(from_all.size() == size && first_of_all.size() == size, "any numbers: of how many");
  for (unsigned from = 0; from < size; ++from) {
    require(from_all[from] == part(from, g.rank()), "all_to_all_any");
    require(first_of_all[from] == part(from, 0), "all_gather_any");
  }

  std::vector<std::uint64_t> out(n * size), in(n * size);
  for (unsigned to = 0; to < size; ++to) {
    for (std::size_t i = 0; i < n; ++i) out[to * n + i] = datum(g.rank() * 1000 + to, i);
  }
  g.all_to_all(out, in);
  for (unsigned from = 0; from < size; ++from) {
    for (std::size_t i = 0; i < n; ++i)
      require(in[from * n + i] == datum(from * 1000 + g.rank(), i), "all_to_all");
  }
}

void all_sizes(group& g) {
  for (const std::size_t n : {0, 1, 30, 700, 2500, test::scaled(20'000, 9000)}) one_size(g, n);
}

// The example of docs/messages.md.
double estimate_pi(strata::group& all, long steps) {
  double sum = 0;
  for (long i = all.rank(); i < steps; i += all.size()) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(steps);
    sum += 4 / (1 + x * x);
  }
  return all.all_reduce(sum, std::plus<>()) / static_cast<double>(steps);
}

}  // namespace

void group_operations(runtime& rt) {
  rt.run([] {
    run_group(5, [](group& g) {
      require(g.size() == 5 * num_nodes(), "how many members");
      require(g.rank() / 5 == node_id(), "where they are");
      require(g.members()[g.rank()] == this_thread::endpoint().id(), "where they receive");
      all_sizes(g);
      // Two more over the same endpoints, in which others come together; and all of them at once.
      endpoint mine;
      std::vector<endpoint_id> list = g.all_gather(mine.id()), some;
      for (unsigned r = g.rank() % 2; r < list.size(); r += 2) some.push_back(list[r]);
      const std::vector<endpoint_id> turned(list.rbegin(), list.rend());
      group back(mine, turned), half(mine, some);
      for (unsigned i = 0; i < test::sampled(test::scaled(300U, 100U), 50U); ++i) {
        require(back.broadcast(g.rank(), 1) == g.size() - 2, "a turned group");
        require(half.all_reduce(1U, std::plus<>()) == some.size(), "half a group");
        require(g.scan(1U, std::plus<>()) == g.rank() + 1, "all of them");
        (void)g.gather(i, i % g.size());
      }
      one_size(half, 1000);
      // By a place of each node.
      std::optional<group> fifth = g.split(g.rank() % 5, -static_cast<int>(g.rank()));
      require(fifth && fifth->size() == num_nodes(), "a part of one on each node");
      require(fifth->rank() == num_nodes() - 1 - node_id(), "the order of keys");
      one_size(*fifth, 1000);
      require(!g.split(std::nullopt), "no part");
      // Nobody waits for anybody for many messages.
      for (unsigned i = 0; i < test::sampled(test::scaled(3000U, 1000U), 500U); ++i)
        require(g.broadcast(i * (g.rank() == 0 ? 1 : 0), 0) == i, "many broadcasts");
    });
    run_group(1, [](group& g) {
      require(g.rank() == node_id() && g.size() == num_nodes(), "one on each node");
      all_sizes(g);
    });
  });
}

void group_errors(runtime& rt) {
  rt.run([] {
    try {
      run_group(3, [](group& g) {
        const std::vector<std::byte> much(400'000);
        std::vector<std::byte> all(much.size() * g.size());
        g.barrier();
        if (g.rank() == g.size() - 1) throw std::out_of_range("of the last member");
        try {
          for (;;) g.all_gather(much, all);
        } catch (const member_left_error& e) {
          require(e.member() == g.size() - 1, "who has left");
          require(std::string(e.what()).find("of the last member") != std::string::npos, "why");
          throw;
        }
      });
      require(false, "a member's exception");
    } catch (const remote_error& e) {
      require(e.node() == num_nodes() - 1, "where it was thrown");
      require(std::string(e.what()).find("of the last member") != std::string::npos, "its text");
    } catch (const std::out_of_range&) {
      require(num_nodes() == 1, "which exception");
    }
    // Nodes on which the arguments cannot be read: nobody waits for them, or begins.
    if (num_nodes() > 1) {
      try {
        run_group(
            2, [](group&, const unreadable&) { require(false, "it has begun"); },
            unreadable{"arguments"});
        require(false, "arguments that nobody reads");
      } catch (const remote_error& e) {
        require(e.type_name() == "strata::serialization_error", e.what());
      }
    }
    // Too much from one of them, in messages that are fetched.
    run_group(3, [](group& g) {
      std::vector<std::byte> v(g.rank() == 1 ? 50'000 : 60'000);
      try {
        g.broadcast(v, g.size() - 1);
        g.barrier();
        require(false, "sizes that do not fit");
      } catch (const group_error&) {
      } catch (const member_left_error&) {
      }
    });
  });
}

void group_loses_a_node(runtime& rt) {
  try {
    rt.run([] {
      try {
        run_group(3, [](group& g) {
          for (int i = 0;; ++i) {
            g.barrier();
            if (i == 100 && g.rank() == g.size() - 1) std::raise(SIGKILL);
          }
        });
      } catch (const node_lost_error& e) {
        require(e.node() == num_nodes() - 1, "who is lost");
        std::puts("told");
        throw;
      }
    });
  } catch (const node_lost_error&) {
  }
}

void group_example(runtime& rt) {
  rt.run([] {
    run_group(4, [](group& all) {
      const double pi = estimate_pi(all, 1'000'000);
      require(pi > 3.14159265 && pi < 3.14159266, "pi");
    });
  });
}

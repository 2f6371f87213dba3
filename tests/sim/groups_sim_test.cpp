// SPDX-License-Identifier: Apache-2.0
// Groups of threads on many simulated nodes: each operation gives all of them what it should, and
// when a member leaves or a node is lost nobody waits for it.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "expected_error.hpp"
#include "program_job.hpp"
#include "strata/group.hpp"
#include "strata/serialize.hpp"
#include "unreadable_on.hpp"

namespace strata::test {
namespace {

using net::node_id;

// x -> a x + b, modulo 2^32. To do one after the other is associative, and not commutative.
struct affine {
  std::uint32_t a = 1, b = 0;
  friend bool operator==(const affine&, const affine&) = default;
};
affine then(const affine& first, const affine& second) {
  return {first.a * second.a, second.a * first.b + second.b};
}

class crowd {
 public:
  crowd(std::uint64_t seed, node_id nodes, unsigned on_each, const sim::job_model& model,
        const sim::network_model& network = program_job::misbehaving)
      : p(seed, model, network),
        seed_(seed),
        ids_(std::size_t{nodes} * on_each),
        arrived_(ids_.size()) {
    for (unsigned rank = 0; rank < ids_.size(); ++rank) {
      p.begin(static_cast<node_id>(rank / on_each), [this, rank] {
        endpoint mine;
        ids_[rank] = mine.id();
        while (std::count(ids_.begin(), ids_.end(), endpoint_id()) != 0) p.pause(50'000);
        member(rank, mine);
      });
    }
  }

  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(ids_.size()); }

  unsigned operations = 25;
  // By a member that is about to begin an operation; may throw, or make it leave.
  std::function<void(group&, unsigned operation)> before_each = [](group&, unsigned) {};
  // With what ended its part.
  std::function<void(unsigned rank, std::exception_ptr)> when_failed;
  unsigned finished = 0;

  program_job p;

 private:
  void member(unsigned rank, endpoint& mine) {
    try {
      group all(mine, ids_);
      EXPECT_EQ(all.rank(), rank);
      prng shared(seed_ + 1);  // all draw the same
      for (unsigned i = 0; i < operations; ++i) {
        if (p.below(3) == 0) p.pause(300'000);
        before_each(all, i);
        operate(all, i, shared);
      }
      ++finished;
    } catch (...) {
      if (!when_failed) throw;
      when_failed(rank, std::current_exception());
    }
  }

  // What that member has in this operation.
  static affine value(unsigned rank, unsigned operation, std::size_t i) {
    return {2 * (rank + static_cast<std::uint32_t>(i)) + 1, operation * 1000 + rank};
  }
  [[nodiscard]] static std::vector<affine> values(unsigned rank, unsigned operation,
                                                  std::size_t n) {
    std::vector<affine> all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = value(rank, operation, i);
    return all;
  }
  // What `from` has for `to`: of all another number, and of some none.
  [[nodiscard]] std::vector<affine> any_values(unsigned from, unsigned to, unsigned operation,
                                               std::size_t n) const {
    return values(from * size() + to, operation, n * ((from + 2 * to) % 4) / 3);
  }
  // Of the ranks from 0 to `last`.
  [[nodiscard]] static std::vector<affine> combined(unsigned last, unsigned operation,
                                                    std::size_t n) {
    std::vector<affine> all = values(0, operation, n);
    for (unsigned rank = 1; rank <= last; ++rank) {
      for (std::size_t i = 0; i < n; ++i) all[i] = then(all[i], value(rank, operation, i));
    }
    return all;
  }
  [[nodiscard]] static std::vector<affine> joined(unsigned members, unsigned operation,
                                                  std::size_t n) {
    std::vector<affine> all;
    for (unsigned rank = 0; rank < members; ++rank) {
      const std::vector<affine> one = values(rank, operation, n);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void operate(group& all, unsigned i, prng& shared) {
    const unsigned me = all.rank(), last = size() - 1;
    const auto root = static_cast<unsigned>(shared.below(size()));
    // Now and then more than 64 KiB, where other algorithms are used.
    const std::size_t n = shared.below(6) == 0 ? 10'000 + shared.below(2'000) : shared.below(20);
    const std::uint64_t which = shared.below(15);
    std::vector<affine> mine = values(me, i, n);
    switch (which) {
      case 0:
        arrived_[me] = i;
        all.barrier();
        for (const unsigned of_one : arrived_) EXPECT_GE(of_one, i);
        return;
      case 1:
        all.broadcast(mine, root);
        EXPECT_EQ(mine, values(root, i, n));
        return;
      case 2: {
        std::vector<affine> result(n);
        all.reduce(mine, result, root, then);
        if (me == root) {
          EXPECT_EQ(result, combined(last, i, n));
        }
        return;
      }
      case 3:
        all.all_reduce(mine, then);
        EXPECT_EQ(mine, combined(last, i, n));
        return;
      case 4:
        all.scan(mine, then);
        EXPECT_EQ(mine, combined(me, i, n));
        return;
      case 5: {
        std::vector<affine> result(me == root ? n * size() : 0);
        all.gather(mine, result, root);
        if (me == root) {
          EXPECT_EQ(result, joined(size(), i, n));
        }
        return;
      }
      case 6: {
        mine.resize(std::min<std::size_t>(n, me));  // of each another size
        const auto result = all.gather_any(std::as_bytes(std::span(mine)), root);
        EXPECT_EQ(result.size(), me == root ? size() : 0U);
        for (unsigned rank = 0; rank < result.size(); ++rank) {
          const std::vector<affine> theirs = values(rank, i, std::min<std::size_t>(n, rank));
          EXPECT_TRUE(std::ranges::equal(result[rank], std::as_bytes(std::span(theirs))));
        }
        return;
      }
      case 7: {
        std::vector<affine> result(n * size());
        all.all_gather(mine, result);
        EXPECT_EQ(result, joined(size(), i, n));
        return;
      }
      case 8:
        all.scatter(me == root ? joined(size(), i, n) : std::vector<affine>(), mine, root);
        EXPECT_EQ(mine, values(me, i, n));
        return;
      case 9: {
        const auto result = all.all_gather_any(any_values(me, last, i, n));
        EXPECT_EQ(result.size(), size());
        for (unsigned rank = 0; rank < result.size(); ++rank)
          EXPECT_EQ(result[rank], any_values(rank, last, i, n));
        return;
      }
      case 10: {
        std::vector<std::vector<affine>> parts;
        for (unsigned to = 0; me == root && to < size(); ++to)
          parts.push_back(any_values(root, to, i, n));
        EXPECT_EQ(all.scatter_any(parts, root), any_values(root, me, i, n));
        return;
      }
      case 11: {
        std::vector<std::vector<affine>> parts;
        for (unsigned to = 0; to < size(); ++to) parts.push_back(any_values(me, to, i, n));
        const auto result = all.all_to_all_any(parts);
        EXPECT_EQ(result.size(), size());
        for (unsigned from = 0; from < result.size(); ++from)
          EXPECT_EQ(result[from], any_values(from, me, i, n));
        return;
      }
      case 12: {
        std::vector<affine> result = values(last + 1, i, n);  // which rank 0 keeps
        all.exclusive_scan(mine, result, then);
        EXPECT_EQ(result, me == 0 ? values(last + 1, i, n) : combined(me - 1, i, n));
        return;
      }
      case 13: {
        const std::vector<affine> wanted = combined(last, i, n * size());
        all.reduce_scatter(values(me, i, n * size()), mine, then);
        EXPECT_TRUE(std::ranges::equal(mine, std::span(wanted).subspan(n * me, n)));
        return;
      }
      default: {
        // What `from` has for `to`.
        const auto block = [&](unsigned from, unsigned to) {
          return values(from * size() + to, i, n);
        };
        std::vector<affine> out, in(n * size()), wanted;
        for (unsigned other = 0; other < size(); ++other) {
          const auto mine_for_it = block(me, other), its_for_me = block(other, me);
          out.insert(out.end(), mine_for_it.begin(), mine_for_it.end());
          wanted.insert(wanted.end(), its_for_me.begin(), its_for_me.end());
        }
        all.all_to_all(out, in);
        EXPECT_EQ(in, wanted);
      }
    }
  }

  const std::uint64_t seed_;
  std::vector<endpoint_id> ids_;
  std::vector<unsigned> arrived_;
};

TEST(simulated_groups, give_every_member_what_it_should_get) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto& [nodes, on_each] : {std::pair<node_id, unsigned>{4, 2}, {3, 1}, {7, 1}}) {
      crowd c(seed, nodes, on_each, {.nodes = nodes});
      c.p.run();
      EXPECT_EQ(c.finished, c.size());
    }
  }
}

TEST(simulated_groups, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    crowd c(7, 4, 2, {.nodes = 4});
    c.p.run();
    return c.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

// It says so, or an exception ends its group: the others hear who it was and why, in whatever
// operation they are or at the next in which they wait for anybody.
TEST(simulated_groups, hear_of_a_member_that_leaves) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_exception : {false, true}) {
      crowd c(seed, 4, 2, {.nodes = 4});
      const auto leaver = static_cast<unsigned>(c.p.below(c.size()));
      const auto when = static_cast<unsigned>(c.p.below(c.operations));
      unsigned told = 0;
      c.before_each = [&](group& all, unsigned operation) {
        if (all.rank() == leaver && operation == when) {
          if (by_exception) throw std::runtime_error("it has had enough");
          all.leave("it has had enough");
        }
        // In some operations nobody waits for anybody; in the end all do.
        if (operation + 1 == c.operations) all.barrier();
      };
      c.when_failed = [&](unsigned rank, const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const member_left_error& e) {
          EXPECT_EQ(e.member(), leaver) << e.what();
          EXPECT_NE(std::string(e.what()).find(by_exception ? "an exception has ended its group"
                                                            : "it has had enough"),
                    std::string::npos)
              << e.what();
          ++told;
        } catch (const std::runtime_error& e) {
          EXPECT_EQ(rank, leaver) << e.what();
          EXPECT_TRUE(by_exception) << e.what();
          ++told;
        }
      };
      c.p.run();
      EXPECT_EQ(told, c.size());
    }
  }
}

TEST(simulated_groups, end_when_a_node_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    constexpr unsigned on_each = 2;
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 50 * program_job::ms, .breaks_off = true};
    crowd c(seed, nodes, on_each, model, program_job::disorderly);
    c.operations = 100'000;  // longer than it lives
    const auto victim = static_cast<node_id>(c.p.below(nodes));
    unsigned told = 0, by_loss = 0;
    c.when_failed = [&](unsigned rank, const std::exception_ptr& error) {
      if (rank / on_each == victim) return;
      ++told;
      try {
        std::rethrow_exception(error);
      } catch (const node_lost_error& e) {
        EXPECT_EQ(e.node(), victim) << e.what();
        ++by_loss;
      } catch (const member_left_error&) {  // who has heard of it before
      }
    };
    c.p.world.at(static_cast<std::int64_t>(c.p.below(40 * program_job::ms)),
                 [&] { c.p.job->node(victim).crash(); });
    c.p.run();
    EXPECT_EQ(c.finished, 0U);
    EXPECT_EQ(told, (nodes - 1) * on_each);
    EXPECT_GT(by_loss, 0U);
  }
}

// It finds that out before it has said anything to anybody.
TEST(simulated_groups, are_left_by_who_hears_of_a_loss_as_an_operation_begins) {
  constexpr node_id nodes = 3, victim = 2;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes, .lost_after_ns = 50 * program_job::ms, .breaks_off = true},
                  program_job::disorderly);
    std::vector<endpoint_id> ids(nodes);
    unsigned have_one = 0, told = 0;
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [&, n] {
        endpoint mine;
        ids[n] = mine.id();
        while (std::count(ids.begin(), ids.end(), endpoint_id()) != 0) p.pause(50'000);
        group all(mine, ids);
        ++have_one;
        if (n == victim) {
          while (have_one != nodes) p.pause(50'000);
          p.world.at(p.now_ns(), [&] { p.job->node(victim).crash(); });
          return;
        }
        while (p.job->node(n).losses().empty()) p.pause(program_job::ms);
        EXPECT_THROW(all.barrier(), node_lost_error);
        EXPECT_THROW(all.barrier(), member_left_error);
        EXPECT_THROW((void)all.all_reduce(1, std::plus<>()), member_left_error);
        ++told;
      });
    }
    p.run();
    EXPECT_EQ(told, nodes - 1U);
  }
}

// All who make it are told, whoever has ended, and of how many: the others too that only hear from
// others.
void make_with_some_that_have_ended(std::uint64_t seed, node_id nodes, unsigned on_each) {
  program_job p(seed, {.nodes = nodes});
  std::vector<endpoint_id> ids(nodes * on_each);
  const auto size = static_cast<unsigned>(ids.size());
  std::vector<bool> ends(size);
  ends[p.below(size)] = true;
  for (unsigned more = static_cast<unsigned>(p.below(size / 2)); more != 0; --more)
    ends[p.below(size)] = true;
  const auto all_that_end = static_cast<unsigned>(std::count(ends.begin(), ends.end(), true));
  unsigned ended = 0, told = 0;
  for (unsigned rank = 0; rank < size; ++rank) {
    p.begin(static_cast<node_id>(rank / on_each), [&, rank] {
      endpoint mine;
      ids[rank] = mine.id();
      while (std::count(ids.begin(), ids.end(), endpoint_id()) != 0) p.pause(50'000);
      if (ends[rank]) {
        { const endpoint last(std::move(mine)); }
        ++ended;
        return;
      }
      while (ended != all_that_end) p.pause(500'000);
      try {
        const group all(mine, ids);
        ADD_FAILURE() << "member " << rank << " has one";
      } catch (const endpoint_closed_error& e) {
        EXPECT_TRUE(ends[static_cast<std::size_t>(std::find(ids.begin(), ids.end(), e.which()) -
                                                  ids.begin())])
            << e.what();
      }
      ++told;
      while (told + ended != size) p.pause(500'000);
    });
  }
  p.run();
  EXPECT_EQ(told + ended, size);
}

TEST(simulated_groups, are_not_made_with_members_that_have_ended) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto& [nodes, on_each] : {std::pair<node_id, unsigned>{2, 1}, {4, 2}, {7, 1}})
      make_with_some_that_have_ended(seed, nodes, on_each);
  }
}

// ---- groups of a whole job ----

// Those of these nodes, of which the simulation knows no list.
void sum_up(const std::vector<node_id_t>& nodes) {
  detail::run_group_on(
      nodes, 3,
      [](group& all, unsigned count) {
        EXPECT_EQ(all.size(), 3 * count);
        EXPECT_EQ(all.rank() / 3, strata::node_id());
        EXPECT_EQ(all.members()[all.rank()], this_thread::endpoint().id());
        EXPECT_EQ(all.all_reduce(1U, std::plus<>()), all.size());
      },
      static_cast<unsigned>(nodes.size()));
}

TEST(simulated_groups, begin_nowhere_if_one_node_cannot_read_their_arguments) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    p.begin(0, [&] {
      for (const node_id_t bad : {1, 2, 3}) {
        expect_error<remote_error>(
            p, "an argument", INT64_MAX,
            [&] {
              detail::run_group_on(
                  {0, 1, 2, 3}, 2,
                  [](group&, const unreadable_on&) { ADD_FAILURE() << "it has begun"; },
                  unreadable_on{bad});
            },
            [&](const remote_error& e) {
              return e.node() == bad && e.type_name() == "strata::serialization_error";
            });
        sum_up({0, 1, 2, 3});
      }
    });
    p.run();
  }
}

// While the others are called, or have been.
TEST(simulated_groups, begin_nowhere_if_a_node_has_just_left) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4, .founders = 3});
    bool has_left = false;
    p.begin(0, [&] {
      expect_error<node_left_error>(
          p, "a node that has left", INT64_MAX,
          [&] {
            for (;;) {
              sum_up({0, 1, 2});
              p.pause(200'000);
            }
          },
          [](const node_lost_error& e) { return e.node() == 2; });
      sum_up({0, 1});
    });
    p.world.at(static_cast<std::int64_t>(p.below(10 * program_job::ms)),
               [&] { p.job->leave(2, [&] { has_left = true; }); });
    p.run([&] { return has_left; });
  }
}

TEST(simulated_groups, tell_what_a_thread_of_a_whole_job_throws) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    p.begin(0, [&] {
      for (const unsigned thrower : {1U, 4U, 7U}) {
        const auto work = [](group& all, unsigned who) {
          if (all.rank() == who) throw std::out_of_range("its own trouble");
          for (;;) all.barrier();
        };
        // The others' errors were caused by it.
        if (thrower < 2) {
          expect_error<std::out_of_range>(p, "here", INT64_MAX, [&] {
            detail::run_group_on({0, 1, 2, 3}, 2, work, thrower);
          });
        } else {
          expect_error<remote_error>(
              p, "elsewhere", INT64_MAX,
              [&] {
                detail::run_group_on({0, 1, 2, 3}, 2, work, thrower);
              },
              [&](const remote_error& e) { return e.type_name() == "std::out_of_range"; });
        }
      }
    });
    p.run();
  }
}

}  // namespace
}  // namespace strata::test

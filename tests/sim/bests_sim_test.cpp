// SPDX-License-Identifier: Apache-2.0
// A shared_best over a network that misbehaves, and where nodes are lost or leave: everybody comes
// to know the best, nobody ever a worse one than before, and nobody waits for ever.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "expected_error.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/shared_best.hpp"

namespace strata::test {
namespace {

using net::node_id;

class simulated_bests : public testing::Test {
 protected:
  static constexpr node_id home = 1, everybody = 4;
  static constexpr std::int64_t lost_after_ns = 30 * program_job::ms;
};

TEST_F(simulated_bests, are_known_to_all_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody});
    p.cut_now_and_then(everybody);
    std::optional<best_handle<unsigned>> all;
    unsigned greatest = 0, finding = everybody, knowing = 0;
    for (node_id n = 0; n < everybody; ++n) {
      p.begin(n, [&] {
        std::optional<shared_best<unsigned>> mine;
        if (strata::node_id() == home) all = mine.emplace(0U).handle();
        while (!all) p.pause(100'000);
        p.pause(3 * program_job::ms);  // some begin to follow when others have found something
        const best_here<unsigned> best = all->here();
        unsigned before = best.value();
        for (int i = 0; i < 20; ++i) {
          const unsigned value = 1 + static_cast<unsigned>(p.below(1000));
          greatest = std::max(greatest, value);
          const bool is_better = value > before, has_improved = best.improve(value);
          EXPECT_EQ(has_improved, is_better) << value;
          EXPECT_GE(best.value(), std::max(before, value));
          before = best.value();
          p.pause(300'000);
          EXPECT_GE(best.value(), before);
          before = best.value();
        }
        --finding;
        while (finding != 0) p.pause(100'000);
        if (mine) EXPECT_EQ(mine->of_all_nodes(), greatest);
        while (best.value() != greatest) p.pause(100'000);
        ++knowing;
        while (mine && knowing != everybody) p.pause(100'000);
      });
    }
    p.run([&] {
      for (node_id n = 0; n < everybody; ++n)
        if (p.job->node(n).messenger.bests.size() != 0) return false;
      return knowing == everybody && p.stacks() == 0;
    });
  }
}

// What the others have found, and said, is known all the same.
TEST_F(simulated_bests, go_on_when_a_node_that_follows_leaves) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .founders = 3});
    std::optional<shared_best<unsigned>> mine;
    unsigned following = 0, told = 0;
    bool has_left = false, may_end = false;
    p.begin(home, [&] {
      mine.emplace(0U);
      while (following != 2) p.pause(100'000);
      p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(200'000)),
                 [&] { p.job->leave(2, [&] { has_left = true; }); });
      while (!has_left) {
        if (mine->here().improve(mine->value() + 1)) ++told;
        p.pause(20'000);
      }
      EXPECT_GT(told, 0U);
      const unsigned last = mine->value() + 1;
      EXPECT_TRUE(mine->here().improve(last));
      EXPECT_EQ(mine->of_all_nodes(), last);
      while (!may_end) p.pause(100'000);
      mine.reset();
    });
    p.begin(2, [&] {
      while (!mine) p.pause(100'000);
      EXPECT_TRUE(mine->handle().here().improve(5000));
      ++following;
    });
    p.begin(0, [&] {
      while (!mine) p.pause(100'000);
      const best_here<unsigned> best = mine->handle().here();
      ++following;
      while (!has_left || best.value() < 5000) p.pause(100'000);
      may_end = true;
    });
    p.run([&] { return has_left && may_end && p.stacks() == 0; });
  }
}

void find_twice(best_handle<unsigned> all) {
  const best_here<unsigned> best = all.here();
  (void)best.improve(10);
  (void)best.improve(20);
}

// One node calls it where it is about to leave, when the best's node says nothing to it any more:
// it hears of the first one, and does not say so in time.
TEST_F(simulated_bests, have_what_a_node_has_found_before_it_leaves) {
  constexpr node_id leaver = 2, late = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .founders = 3});
    std::optional<best_handle<unsigned>> all;
    bool is_followed = false, says_nothing = false, has_waited = false, has_left = false;
    p.job->node(home).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      says_nothing |= k == cluster::kind::farewell;
      return false;
    };
    p.job->node(late).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      return k == cluster::kind::farewell && !std::exchange(has_waited, true);
    };
    p.begin(home, [&] {
      shared_best<unsigned> mine(0U);
      all = mine.handle();
      while (!has_left) p.pause(100'000);
      EXPECT_EQ(mine.of_all_nodes(), 20U);
    });
    p.begin(leaver, [&] {
      while (!all) p.pause(100'000);
      (void)all->here();
      is_followed = true;
    });
    p.begin(late, [&] {
      while (!is_followed) p.pause(100'000);
      p.world.at(p.now_ns(), [&] { p.job->leave(leaver, [&] { has_left = true; }); });
      while (!has_waited || !says_nothing) p.pause(100'000);
      call<find_twice>(on_node{leaver}, *all);
      p.world.at(p.now_ns(),
                 [&] { p.job->node(late).handle(leaver, cluster::kind::farewell, {}); });
    });
    p.run([&] { return has_left && p.stacks() == 0; });
  }
}

// Its own node leaves, which ends it first: others keep what they know, and find for themselves.
TEST_F(simulated_bests, of_a_node_that_has_left_are_known_as_they_were) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .founders = 3});
    std::optional<best_handle<unsigned>> all;
    bool is_followed = false, has_left = false, is_over = false;
    p.begin(home, [&] {
      shared_best<unsigned> mine(3);
      all = mine.handle();
      while (!is_followed) p.pause(100'000);
    });
    p.begin(home, [&] {
      while (!is_followed) p.pause(100'000);
      p.world.at(p.now_ns(), [&] { p.job->leave(home, [&] { has_left = true; }); });
    });
    p.begin(0, [&] {
      while (!all) p.pause(100'000);
      const best_here<unsigned> best = all->here();
      is_followed = true;
      while (!has_left) p.pause(100'000);
      EXPECT_EQ(best.value(), 3U);
      EXPECT_TRUE(best.improve(4));
      EXPECT_EQ(best.value(), 4U);
      expect_error<node_left_error>(
          p, "here", program_job::ms, [&] { (void)all->here(); },
          [](const node_left_error& e) { return e.node() == home; });
      is_over = true;
    });
    p.run([&] { return is_over && p.stacks() == 0; });
  }
}

// Whoever improves goes on, and this node knows the better value all the same; who asks the others
// hears of the loss.
TEST_F(simulated_bests, are_improved_here_although_a_node_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .lost_after_ns = lost_after_ns, .breaks_off = true},
                  program_job::disorderly);
    std::optional<best_handle<unsigned>> all;
    unsigned following = 0, ended = 0;
    const node_id victim = p.below(2) == 0 ? home : node_id{2};
    for (node_id n = 0; n < everybody; ++n) {
      p.begin(n, [&] {
        std::optional<shared_best<unsigned>> mine;
        if (strata::node_id() == home) all = mine.emplace(0U).handle();
        while (!all) p.pause(100'000);
        const best_here<unsigned> best = all->here();
        if (++following == everybody) {
          p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(30'000)),
                     [&p, victim] { p.job->node(victim).crash(); });
        }
        while (following != everybody) p.pause(100'000);
        const std::int64_t end_ns = p.now_ns() + 4 * lost_after_ns;
        while (p.now_ns() < end_ns && !p.job->node(strata::node_id()).has_crashed()) {
          const unsigned wanted = best.value() + 1;
          EXPECT_TRUE(best.improve(wanted));
          EXPECT_GE(best.value(), wanted);
          this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (mine && !p.job->node(home).has_crashed())
          EXPECT_THROW((void)mine->of_all_nodes(), node_lost_error);
        ++ended;
      });
    }
    p.run();
    EXPECT_GE(ended, everybody - 1U);
  }
}

// However often in a row: who is told hears the last of it, and nobody waits for each.
TEST_F(simulated_bests, of_many_improvements_in_a_row_the_last_is_told) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody});
    constexpr unsigned improvements = 2'000;
    std::optional<best_handle<unsigned>> all;
    unsigned following = 0, knowing = 0;
    for (node_id n = 0; n < everybody; ++n) {
      p.begin(n, [&] {
        std::optional<shared_best<unsigned>> mine;
        if (strata::node_id() == home) all = mine.emplace(0U).handle();
        while (!all) p.pause(100'000);
        const best_here<unsigned> best = all->here();
        ++following;
        while (following != everybody) p.pause(100'000);
        if (strata::node_id() <= home) {
          for (unsigned i = 1; i <= improvements; ++i)
            (void)best.improve(2 * i + strata::node_id());
          EXPECT_LE(p.stacks(), 16U * everybody);
        }
        while (best.value() != 2 * improvements + home) p.pause(100'000);
        ++knowing;
        while (knowing != everybody) p.pause(100'000);
      });
    }
    p.run([&] { return p.stacks() == 0; });  // who tells has an answer, too
  }
}

}  // namespace
}  // namespace strata::test

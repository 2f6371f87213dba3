// SPDX-License-Identifier: Apache-2.0
// A shared_stop whose node, or one that has a token of it, is lost or leaves: whoever uses it hears
// so, and nobody waits for ever.
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "expected_error.hpp"
#include "program_job.hpp"
#include "strata/parallel.hpp"
#include "strata/shared_stop.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

constexpr node_id home = 1, everybody = 4;
constexpr std::int64_t lost_after_ns = 30 * program_job::ms;

sim::job_model with_losses() {
  return {.nodes = everybody, .lost_after_ns = lost_after_ns, .breaks_off = true};
}

template <class Error>
void expect_end_of(node_id which, const program_job& p, const char* what,
                   const std::function<void()>& f) {
  expect_error<Error>(p, what, 2 * lost_after_ns, f,
                      [which](const Error& e) { return e.node() == which; });
}

// Node 2 has a token of it, node 3 has none, and node 0 asks for one when the stop's node crashes.
TEST(simulated_stops, of_a_node_that_is_lost_are_requested_by_nobody) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, with_losses(), program_job::disorderly);
    std::optional<stop_handle> stop;
    bool is_followed = false;
    unsigned told = 0;
    p.begin(home, [&] {
      shared_stop mine;
      stop = mine.handle();
      while (told != everybody - 1) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    p.begin(0, [&] {
      while (!is_followed) p.pause(100'000);
      p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(30'000)),
                 [&] { p.job->node(home).crash(); });
      try {
        EXPECT_FALSE(stop->token().stop_requested());
      } catch (const node_lost_error& e) {
        EXPECT_EQ(e.node(), home);
      }
      expect_end_of<node_lost_error>(home, p, "request", [&] { (void)stop->request(); });
      ++told;
    });
    p.begin(2, [&] {
      while (!stop) p.pause(100'000);
      const stop_token before = stop->token();
      is_followed = true;
      expect_end_of<node_lost_error>(home, p, "request", [&] {
        while (!p.job->node(home).has_crashed()) p.pause(100'000);
        (void)stop->request();
      });
      // This node knows it, and nobody has requested a stop.
      EXPECT_FALSE(stop->token().stop_requested());
      EXPECT_FALSE(before.stop_requested());
      ++told;
    });
    p.begin(3, [&] {
      while (!is_followed || !p.job->node(home).has_crashed()) p.pause(100'000);
      expect_end_of<node_lost_error>(home, p, "token", [&] { (void)stop->token(); });
      expect_end_of<node_lost_error>(home, p, "token again", [&] { (void)stop->token(); });
      ++told;
    });
    p.run();
    EXPECT_EQ(told, everybody - 1U);
  }
}

// It says so, and its own node, at least, has been told; a later request returns at once. The end
// of the stop does not wait for the lost node either.
TEST(simulated_stops, are_requested_although_a_node_that_follows_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, with_losses(), program_job::disorderly);
    std::optional<shared_stop> mine;
    std::optional<stop_handle> stop;
    unsigned following = 0;
    bool may_end = false;
    for (node_id n = 0; n < everybody; ++n) {
      if (n == home) continue;
      p.begin(n, [&] {
        while (!stop) p.pause(100'000);
        const stop_token here = stop->token();
        EXPECT_FALSE(here.stop_requested());
        ++following;
        while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
      });
    }
    p.begin(home, [&] {
      mine.emplace();
      stop = mine->handle();
      while (following != everybody - 1) p.pause(100'000);
      p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(20'000)),
                 [&] { p.job->node(2).crash(); });
      // Before it is known, or after.
      this_thread::sleep_for(nanoseconds(p.below(2) == 0 ? 10'000 : 2 * lost_after_ns));
      try {
        EXPECT_TRUE(mine->request());
      } catch (const node_lost_error& e) {
        EXPECT_EQ(e.node(), 2);
      }
      EXPECT_TRUE(mine->token().stop_requested());
      EXPECT_FALSE(mine->request());
      const std::int64_t begun_ns = p.now_ns();
      mine.reset();
      EXPECT_LE(p.now_ns() - begun_ns, 2 * lost_after_ns);
      may_end = true;
    });
    p.run();
  }
}

// Its tokens know of the request already; callbacks are called by the one that comes through.
TEST(simulated_stops, are_requested_again_by_who_had_no_memory_for_it) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 3});
    std::optional<stop_handle> stop;
    unsigned following = 0, called = 0;
    bool is_over = false;
    const auto follow = [&](const stop_token& here) {
      const stop_callback counts(here, [&] { ++called; });
      ++following;
      while (!is_over) p.pause(100'000);
    };
    p.begin(home, [&] {
      shared_stop mine;
      stop = mine.handle();
      follow(mine.token());
    });
    p.begin(2, [&] {
      while (!stop) p.pause(100'000);
      follow(stop->token());
    });
    p.begin(0, [&] {
      while (following != 2) p.pause(100'000);
      p.job->node(0).says = [](node_id, cluster::kind k) {
        if (k == cluster::kind::invoke) throw std::bad_alloc();
      };
      EXPECT_THROW((void)stop->request(), std::bad_alloc);
      p.job->node(0).says = {};
      p.pause(2 * program_job::ms);
      EXPECT_TRUE(stop->request());
      EXPECT_EQ(called, 2U);
      EXPECT_FALSE(stop->request());
      is_over = true;
    });
    p.run();
  }
}

// Of the second node no worker has had time to call what hangs on its tokens.
TEST(simulated_stops, are_heard_by_scopes_and_loops_where_workers_compute) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id follower = 0;
    program_job p(seed, {.nodes = 2});
    std::vector<stop_handle> stops;
    unsigned following = 0;
    bool has_time = true;
    std::vector<std::byte> put_off;
    p.job->node(follower).hears = [&](node_id, cluster::kind k, std::span<const std::byte> call) {
      if (k != cluster::kind::invoke || has_time) return false;
      put_off.assign(call.begin(), call.end());
      return true;
    };
    p.begin(home, [&] {
      std::array<shared_stop, 2> mine;
      for (const shared_stop& one : mine) stops.push_back(one.handle());
      for (unsigned i = 0; i < mine.size(); ++i) {
        while (following != i + 1) p.pause(100'000);
        EXPECT_TRUE(mine[i].request());
      }
    });
    p.begin(follower, [&] {
      while (stops.empty()) p.pause(100'000);
      const std::array<stop_token, 2> found{stops[0].token(), stops[1].token()};
      const auto wait_for = [&](unsigned i) {
        has_time = false;
        following = i + 1;
        while (!found[i].stop_requested()) p.pause(100'000);
      };
      const auto let_it_come = [&] {
        while (put_off.empty()) p.pause(100'000);
        p.world.at(p.now_ns(), [&] {
          has_time = true;
          p.job->node(follower).handle(home, cluster::kind::invoke, std::exchange(put_off, {}));
        });
        while (!has_time) p.pause(100'000);
      };
      unsigned begun = 0;
      task_scope scope(found[0]);
      const auto one_each = [&](int) {
        wait_for(0);
        return 1;
      };
      EXPECT_EQ(parallel_reduce(found[0], 0, 100, 0, one_each, std::plus<>(), grain{1}), 1);
      for (int i = 0; i < 3; ++i) scope.spawn([&] { ++begun; });
      scope.sync();
      EXPECT_EQ(begun, 0U);
      let_it_come();
      const auto count_one = [&](int) {
        ++begun;
        wait_for(1);
      };
      parallel_for(found[1], 0, 100, count_one, grain{1});
      EXPECT_EQ(begun, 1U);
      let_it_come();
    });
    p.run();
  }
}

// The same where it is the stop's own node that finds no memory, whoever asks.
TEST(simulated_stops, are_requested_again_where_their_node_had_no_memory_for_it) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 3});
    const bool by_home = p.below(2) == 0;
    std::optional<stop_handle> stop;
    unsigned called = 0;
    bool is_followed = false, is_asked = false, is_over = false;
    const auto ask = [&] {
      while (!is_followed) p.pause(100'000);
      p.job->node(home).says = [](node_id, cluster::kind k) {
        if (k == cluster::kind::invoke) throw std::bad_alloc();
      };
      if (by_home) {
        EXPECT_THROW((void)stop->request(), std::bad_alloc);
      } else {
        EXPECT_THROW((void)stop->request(), remote_error);
      }
      p.job->node(home).says = {};
      EXPECT_TRUE(stop->request());
      EXPECT_EQ(called, 1U);
      EXPECT_FALSE(stop->request());
      is_over = is_asked = true;
    };
    p.begin(home, [&] {
      shared_stop mine;
      stop = mine.handle();
      if (by_home) ask();
      while (!is_asked) p.pause(100'000);
    });
    p.begin(2, [&] {
      while (!stop) p.pause(100'000);
      const stop_callback counts(stop->token(), [&] { ++called; });
      is_followed = true;
      while (!is_over) p.pause(100'000);
    });
    p.begin(0, [&] {
      while (!stop) p.pause(100'000);
      if (!by_home) ask();
    });
    p.run();
  }
}

// A node that leaves ends its stops first, and one that follows takes its tokens with it.
TEST(simulated_stops, of_a_node_that_leaves_are_requested_by_nobody) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .founders = 3});
    std::optional<stop_handle> stop;
    stop_token kept;
    bool is_kept = false;
    bool has_left = false;
    unsigned told = 0;
    p.begin(home, [&] {
      shared_stop mine;
      stop = mine.handle();
      while (!is_kept) p.pause(100'000);
    });
    for (const node_id n : {node_id{0}, node_id{2}}) {
      p.begin(n, [&, n] {
        while (!stop) p.pause(100'000);
        if (n == 2) {
          kept = stop->token();
          is_kept = true;
        }
        while (!has_left) p.pause(100'000);
        expect_end_of<node_left_error>(home, p, "token", [&] { (void)stop->token(); });
        expect_end_of<node_left_error>(home, p, "request", [&] { (void)stop->request(); });
        EXPECT_FALSE(kept.stop_requested());
        ++told;
      });
    }
    p.begin(home, [&] {
      while (!is_kept) p.pause(100'000);
      p.world.at(p.now_ns(), [&] { p.job->leave(home, [&] { has_left = true; }); });
    });
    p.run([&] { return has_left; });
    EXPECT_EQ(told, 2U);
    kept = {};
  }
}

// One after the other, from before it begins to leave until after it has left.
TEST(simulated_stops, are_requested_while_a_node_that_follows_leaves) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = everybody, .founders = 3});
    std::vector<stop_handle> stops;
    bool are_made = false, has_left = false;
    std::array<bool, 2> follows{};
    p.begin(2, [&] {
      while (!are_made) p.pause(100'000);
      for (const stop_handle& one : stops) EXPECT_FALSE(one.token().stop_requested());
      follows[1] = true;
    });
    p.begin(0, [&] {
      while (!are_made) p.pause(100'000);
      std::vector<stop_token> tokens;
      for (const stop_handle& one : stops) tokens.push_back(one.token());
      follows[0] = true;
      for (const stop_token& here : tokens) {
        while (!here.stop_requested()) p.pause(100'000);
      }
    });
    p.begin(home, [&] {
      std::deque<shared_stop> mine(60);
      for (const shared_stop& one : mine) stops.push_back(one.handle());
      are_made = true;
      while (!follows[0] || !follows[1]) p.pause(100'000);
      p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(200'000)),
                 [&] { p.job->leave(2, [&] { has_left = true; }); });
      std::size_t requested = 0;
      for (; requested + 1 < mine.size(); ++requested) EXPECT_TRUE(mine[requested].request());
      while (!has_left) p.pause(100'000);
      EXPECT_TRUE(mine[requested].request());
    });
    p.run([&] { return has_left; });
  }
}

}  // namespace
}  // namespace strata::test

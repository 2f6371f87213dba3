// SPDX-License-Identifier: Apache-2.0
// Threads of many simulated nodes that wait for what has a name, and not for ever: who waits in
// vain takes nothing along, and what comes as its time ends goes to somebody else, or stays.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "expected_error.hpp"
#include "program_job.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/synchronizers.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

constexpr node_id nodes = 4;

nanoseconds any_time(program_job& p, std::uint64_t most_ns) {
  return nanoseconds(static_cast<std::int64_t>(p.below(most_ns)));
}

TEST(simulated_timed_names, no_unit_is_lost_or_doubled) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes});
    constexpr int units_in_all = 2;
    constexpr unsigned on_each = 3;
    const auto home = static_cast<node_id>(p.below(nodes));
    int inside = 0, got = 0, in_vain = 0;
    unsigned left = nodes * on_each;
    p.begin(home, [&] {
      const named<counting_semaphore<>> units("units", units_in_all);
      while (left != 0) p.pause(program_job::ms);
      semaphore_handle mine = semaphore_handle::await("units");
      for (int i = 0; i < units_in_all; ++i) EXPECT_TRUE(mine.try_acquire()) << "one is lost";
      EXPECT_FALSE(mine.try_acquire()) << "there is one more";
    });
    for (unsigned i = 0; i < nodes * on_each; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [&] {
        semaphore_handle units = semaphore_handle::await("units");
        lock_handle as_lock(units);
        for (int round = 0; round < 30; ++round) {
          const nanoseconds limit = any_time(p, 600'000);
          const std::int64_t began = p.now_ns();
          bool has_one = true;
          switch (p.below(8)) {
            case 0:
              units.acquire();
              break;
            case 1:
              has_one = as_lock.try_lock_for(limit);
              break;
            default:
              has_one = units.try_acquire_for(limit);
          }
          if (!has_one) {
            EXPECT_GE(p.now_ns(), began + limit.count());
            ++in_vain;
            continue;
          }
          ++got;
          EXPECT_LE(++inside, units_in_all);
          p.pause(200'000);
          --inside;
          units.release();
        }
        --left;
      });
    }
    p.cut_now_and_then(nodes);
    p.run();
    EXPECT_GT(got, 0);
    EXPECT_GT(in_vain, 0);
  }
}

// Nobody goes on before all have arrived, and who has waited in vain has arrived once.
TEST(simulated_timed_names, no_phase_is_left_early_or_arrived_at_twice) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes});
    constexpr unsigned users = 2 * nodes, phases = 12;
    std::array<unsigned, users> arrived{};
    unsigned left = users;
    int in_time = 0, in_vain = 0;
    p.begin(static_cast<node_id>(p.below(nodes)), [&] {
      const named<barrier<>> phase("phase", users);
      while (left != 0) p.pause(program_job::ms);
    });
    for (unsigned me = 0; me < users; ++me) {
      p.begin(static_cast<node_id>(me % nodes), [&, me] {
        barrier_handle phase = barrier_handle::await("phase");
        for (unsigned i = 1; i <= phases; ++i) {
          p.pause(400'000);
          arrived[me] = i;
          const barrier_handle::arrival_token token = phase.arrive();
          EXPECT_EQ(token, i - 1);
          for (;;) {
            const nanoseconds limit = any_time(p, 400'000);
            const std::int64_t began = p.now_ns();
            if (phase.wait_for(token, limit)) break;
            EXPECT_GE(p.now_ns(), began + limit.count());
            ++in_vain;
          }
          ++in_time;
          EXPECT_GE(*std::min_element(arrived.begin(), arrived.end()), i);
        }
        --left;
      });
    }
    p.cut_now_and_then(nodes);
    p.run();
    EXPECT_EQ(in_time, static_cast<int>(users * phases));
    EXPECT_GT(in_vain, 0);
  }
}

// Who waits when the loss comes hears of it, however long it would have waited.
TEST(simulated_timed_names, waits_end_with_the_loss_of_a_node) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr std::int64_t lost_after_ns = 30 * program_job::ms;
    program_job p(seed, {.nodes = nodes, .lost_after_ns = lost_after_ns, .breaks_off = true},
                  program_job::disorderly);
    const node_id home = 0, victim = 3;
    unsigned waiting = 0, told = 0;
    bool holds = false;
    p.begin(home, [&] {
      const named<counting_semaphore<>> lock("lock", 1);
      while (told != 2 * (nodes - 1)) p.pause(program_job::ms);
    });
    p.begin(victim, [&] {
      lock_handle::await("lock").lock();
      holds = true;
      while (told != 2 * (nodes - 1)) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    for (node_id n = 0; n < nodes; ++n) {
      if (n == victim) continue;
      for (const bool for_a_name : {false, true}) {
        p.begin(n, [&, for_a_name] {
          while (!holds) p.pause(100'000);
          lock_handle lock = lock_handle::await("lock");
          EXPECT_FALSE(lock.try_lock_for(any_time(p, 200'000)));
          if (++waiting == 2 * (nodes - 1))
            p.world.at(p.now_ns(), [&] { p.job->node(victim).crash(); });
          expect_error<node_lost_error>(
              p, "a wait", 2 * lost_after_ns,
              [&] {
                for_a_name ? (void)await_name_for<int>("nobody's", std::chrono::hours(1))
                           : (void)lock.try_lock_for(std::chrono::hours(1));
              },
              [&](const node_lost_error& e) { return e.node() == victim; });
          ++told;
        });
      }
    }
    p.run();
    p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);
  }
}

// Names that come about when the time ends, or not at all.
TEST(simulated_timed_names, are_there_in_time_or_not) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes});
    unsigned found = 0, in_vain = 0;
    for (int i = 0; i < 30; ++i) {
      const std::string name = "name" + std::to_string(i);
      p.begin(static_cast<node_id>(p.below(nodes)), [&, name, i] {
        this_thread::sleep_for(any_time(p, 2 * program_job::ms));
        publish(name, i);
      });
      for (int waiter = 0; waiter < 3; ++waiter) {
        p.begin(static_cast<node_id>(p.below(nodes)), [&, name, i] {
          const nanoseconds limit = any_time(p, 3 * program_job::ms);
          const std::int64_t began = p.now_ns();
          if (const auto value = await_name_for<int>(name, limit)) {
            EXPECT_EQ(*value, i);
            ++found;
          } else {
            EXPECT_GE(p.now_ns(), began + limit.count());
            ++in_vain;
            EXPECT_EQ(await_name<int>(name), i) << "it comes about, if later";
          }
        });
      }
      p.begin(static_cast<node_id>(p.below(nodes)), [&] {
        EXPECT_FALSE(await_name_for<int>("nobody's", any_time(p, program_job::ms)).has_value());
        EXPECT_FALSE(resource<int>::await_for("nobody's", nanoseconds(0)).has_value());
      });
    }
    p.cut_now_and_then(nodes);
    p.run();
    EXPECT_GT(found, 0U);
    EXPECT_GT(in_vain, 0U);
  }
}

}  // namespace
}  // namespace strata::test

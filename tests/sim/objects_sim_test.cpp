// SPDX-License-Identifier: Apache-2.0
// Objects with names that the threads of many simulated nodes share, over a network that loses,
// doubles and is cut for a while: synchronizers keep their promises, calls and tasks are made once.
#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "program_job.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/synchronizers.hpp"
#include "tasks.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

// Parts of a protocol that are left out, for tests of tests.
enum class left_out { nothing, a_step };

// An object that one node has for as long as threads of all nodes use it.
class users_of_an_object {
 public:
  static constexpr node_id nodes = 4;
  static constexpr unsigned users = 3 * nodes;

  explicit users_of_an_object(std::uint64_t seed)
      : p(seed, {.nodes = nodes}), home(static_cast<node_id>(p.below(nodes))) {
    p.cut_now_and_then(nodes);
  }

  using until_all_have_ended = std::function<void()>;
  void run(const std::function<void(const until_all_have_ended&)>& own,
           const std::function<void(unsigned user)>& use) {
    unsigned left = users;
    p.begin(home, [&] {
      own([&] {
        while (left != 0) p.pause(program_job::ms);
      });
    });
    for (unsigned i = 0; i < users; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [&, i] {
        use(i);
        --left;
      });
    }
    p.run();
  }

  program_job p;
  const node_id home;
};

// ---- locks, semaphores, barriers ----

unsigned most_inside_a_lock(std::uint64_t seed, left_out what) {
  users_of_an_object job(seed);
  unsigned inside = 0, most = 0;
  job.run(
      [](const auto& until_all_have_ended) {
        const named<counting_semaphore<>> lock("lock", 1);
        until_all_have_ended();
      },
      [&](unsigned) {
        lock_handle lock = lock_handle::await("lock");
        for (int round = 0; round < 10; ++round) {
          std::unique_lock held(lock, std::defer_lock);
          if (what == left_out::nothing) {
            if (job.p.below(2) == 0) {
              held.lock();
            } else {
              while (!held.try_lock()) job.p.pause(200'000);
            }
          }
          most = std::max(most, ++inside);
          job.p.pause(50'000);
          --inside;
        }
      });
  return most;
}

TEST(simulated_objects, that_are_locks_let_in_one) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    EXPECT_EQ(most_inside_a_lock(seed, left_out::nothing), 1U);
    EXPECT_GT(most_inside_a_lock(seed, left_out::a_step), 1U) << "nobody would notice";
  }
}

TEST(simulated_objects, that_are_semaphores_keep_their_units) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr unsigned units_of_all = 4;
    users_of_an_object job(seed);
    unsigned inside = 0, most = 0, refused = 0;
    job.run(
        [&](const auto& until_all_have_ended) {
          named<counting_semaphore<>> units("units", units_of_all);
          until_all_have_ended();
          for (unsigned i = 0; i < units_of_all; ++i) EXPECT_TRUE(units->try_acquire());
          EXPECT_FALSE(units->try_acquire()) << "a unit too many";
        },
        [&](unsigned) {
          semaphore_handle units = semaphore_handle::await("units");
          for (int round = 0; round < 20; ++round) {
            const unsigned wanted = 1 + static_cast<unsigned>(job.p.below(2));
            units.acquire();
            unsigned has = 1;
            if (wanted == 2 && units.try_acquire())
              has = 2;
            else if (wanted == 2)
              ++refused;
            most = std::max(most, inside += has);
            job.p.pause(200'000);
            inside -= has;
            units.release(has);
          }
        });
    EXPECT_EQ(most, units_of_all);
    EXPECT_GT(refused, 0U);
  }
}

// By how many phases somebody was ahead of another who had not arrived yet.
unsigned lead_over_a_barrier(std::uint64_t seed, left_out what) {
  users_of_an_object job(seed);
  static constexpr unsigned users = users_of_an_object::users;
  constexpr unsigned arrivals = 12;
  std::vector<unsigned> arrived(users);
  unsigned lead = 0;
  job.run(
      [](const auto& until_all_have_ended) {
        const named<barrier<>> phase("phase", users);
        until_all_have_ended();
      },
      [&](unsigned me) {
        barrier_handle phase = barrier_handle::await("phase");
        for (unsigned i = 1; i <= arrivals; ++i) {
          job.p.pause(200'000);
          arrived[me] = i;
          if (what == left_out::nothing) phase.arrive_and_wait();
          lead = std::max(lead, i - std::min(i, *std::min_element(arrived.begin(), arrived.end())));
        }
      });
  return lead;
}

TEST(simulated_objects, that_are_barriers_wait_for_everybody) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    EXPECT_EQ(lead_over_a_barrier(seed, left_out::nothing), 0U);
    EXPECT_GT(lead_over_a_barrier(seed, left_out::a_step), 0U) << "nobody would notice";
  }
}

// ---- objects of the program ----

struct account {
  long sum = 0;
  unsigned calls = 0;
  long add(long more) {
    ++calls;
    // Others come in between.
    const long before = sum;
    this_thread::sleep_for(nanoseconds(1'000));
    sum = before == sum ? before + more : sum + more;
    return sum;
  }
};

// Whatever the network does with the messages of a call.
TEST(simulated_objects, are_called_exactly_once) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    users_of_an_object job(seed);
    long wanted = 0;
    unsigned made = 0;
    job.run(
        [&](const auto& until_all_have_ended) {
          named<account> all("account");
          until_all_have_ended();
          EXPECT_EQ(all->sum, wanted);
          EXPECT_EQ(all->calls, made);
        },
        [&](unsigned user) {
          const auto all = resource<account>::await("account");
          long before = 0;
          for (int i = 0; i < 30; ++i) {
            const long more = static_cast<long>(job.p.below(1'000)) + user;
            wanted += more;
            ++made;
            const long after = all.call<&account::add>(more);
            EXPECT_GE(after, before + more);
            before = after;
          }
        });
  }
}

// ---- tasks ----

TEST(simulated_objects, that_are_tasks_are_made_once_and_joined_by_all) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    users_of_an_object job(seed);
    unsigned made = 0;
    bool is_done = false;
    const auto there = static_cast<node_id>(
        (job.home + 1 + job.p.below(users_of_an_object::nodes - 1)) % users_of_an_object::nodes);
    unsigned asked_early = 0;
    job.run(
        [&](const auto& until_all_have_ended) {
          const named_task works("works", there, [&] {
            ++made;
            this_thread::sleep_for(nanoseconds(20 * program_job::ms));
            // Whatever the network does: not before somebody has asked too early.
            while (asked_early == 0) this_thread::sleep_for(nanoseconds(program_job::ms));
            is_done = true;
          });
          const named_task fails("fails", there, [] {
            this_thread::sleep_for(nanoseconds(program_job::ms));
            throw std::range_error("no such city");
          });
          until_all_have_ended();
        },
        [&](unsigned) {
          awaited_task works("works");
          while (!works.has_ended()) {
            ++asked_early;
            job.p.pause(10 * program_job::ms);
            if (job.p.below(2) == 0) works.join();
          }
          EXPECT_TRUE(is_done);
          works.join();  // as often as one likes
          try {
            awaited_task("fails").join();
            ADD_FAILURE() << "it has thrown nothing";
          } catch (const remote_error& e) {
            EXPECT_EQ(e.node(), there) << e.what();
            EXPECT_EQ(e.type_name(), "std::range_error");
          }
        });
    EXPECT_EQ(made, 1U);
  }
}

}  // namespace
}  // namespace strata::test

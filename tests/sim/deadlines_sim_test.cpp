// SPDX-License-Identifier: Apache-2.0
// Waits with a time limit, by threads of many simulated nodes: each ends with what has come in
// time, or when its time is over and not before, and what comes later is not lost.
#include <algorithm>
#include <array>
#include <cereal/types/vector.hpp>
#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "program_job.hpp"
#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "strata/message.hpp"
#include "strata/mutex.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/serialize.hpp"
#include "strata/synchronizers.hpp"
#include "tasks.hpp"
#include "used_handle.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

// Whoever goes on at its deadline waits for its turn on its node's worker.
constexpr std::int64_t turn_ns = 50'000;

// ---- waits for what never comes ----

struct vain_wait {
  const char* what;
  bool (*times_out)(nanoseconds limit);
};
constexpr std::array vain_waits{
    vain_wait{"sleep",
              [](nanoseconds limit) {
                this_thread::sleep_for(limit);
                return true;
              }},
    vain_wait{"message",
              [](nanoseconds limit) {
                endpoint mine;
                std::array<std::byte, 8> room;
                transfer in_vain = mine.start_receive(room);
                const bool none = !in_vain.wait_for(limit);
                EXPECT_TRUE(in_vain.valid());
                EXPECT_TRUE(in_vain.cancel());
                return none;
              }},
    vain_wait{"match",
              [](nanoseconds limit) {
                endpoint mine;
                const std::array<std::byte, 8> bytes{};
                transfer in_vain = mine.start_synchronous_send(mine.id(), 0, bytes);
                const bool none = !in_vain.wait_for(limit);
                EXPECT_TRUE(in_vain.cancel());
                return none;
              }},
    vain_wait{"semaphore",
              [](nanoseconds limit) {
                counting_semaphore<> nothing(0);
                return !nothing.try_acquire_for(limit);
              }},
    vain_wait{"mutex",
              [](nanoseconds limit) {
                timed_mutex kept;
                counting_semaphore<> is_kept(0), may_end(0);
                thread keeper([&] {
                  const std::lock_guard lock(kept);
                  is_kept.release();
                  may_end.acquire();
                });
                is_kept.acquire();
                const bool is_refused = !kept.try_lock_for(limit);
                may_end.release();
                keeper.join();
                return is_refused;
              }},
    vain_wait{"condition variable",
              [](nanoseconds limit) {
                mutex m;
                condition_variable nobody;
                std::unique_lock lock(m);
                return nobody.wait_for(lock, limit) == cv_status::timeout;
              }},
    vain_wait{"future", &promise_times_out}};

TEST(simulated_deadlines, come_when_they_are_due) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const sim::job_model model{.nodes = 3};
    program_job p(seed, model);
    for (unsigned i = 0; i < 30; ++i) {
      p.begin(static_cast<node_id>(i % model.nodes), [&] {
        for (int round = 0; round < 12; ++round) {
          const vain_wait& wait = vain_waits[p.below(vain_waits.size())];
          const auto limit_ns = static_cast<std::int64_t>(p.below(3 * program_job::ms));
          const std::int64_t begun_ns = p.now_ns();
          EXPECT_TRUE(wait.times_out(nanoseconds(limit_ns))) << wait.what;
          EXPECT_GE(p.now_ns() - begun_ns, limit_ns) << wait.what;
          EXPECT_LE(p.now_ns() - begun_ns, limit_ns + turn_ns) << wait.what;
        }
      });
    }
    p.run();
  }
}

// No thread and no clock of the machine is asked.
TEST(simulated_deadlines, let_an_hour_pass_at_once) {
  program_job p(1, {.nodes = 2});
  p.begin(1, [] { this_thread::sleep_for(std::chrono::hours(1)); });
  p.begin(0, [&] {
    counting_semaphore<> nothing(0);
    EXPECT_FALSE(nothing.try_acquire_for(std::chrono::minutes(1)));
    EXPECT_LT(p.now_ns(), 61'000 * program_job::ms);
  });
  EXPECT_TRUE(p.world.run([&] { return p.threads() == 0; }));
  EXPECT_GE(p.now_ns(), 3'600'000 * program_job::ms);
  EXPECT_LT(p.now_ns(), 3'600'001 * program_job::ms);
  EXPECT_LT(p.world.happenings(), 1'000U);
}

// Of the tests themselves: whoever is left over keeps its timer, for which its scheduler waits.
TEST(simulated_deadlines, of_threads_that_are_left_over_end_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave_one_over = [] {
    program_job p(1, sim::job_model{});
    p.begin(1, [] { this_thread::sleep_for(std::chrono::hours(1)); });
    p.world.run([] { return false; }, program_job::ms);
  };
  EXPECT_EXIT(leave_one_over(), testing::ExitedWithCode(1), "1 threads and 1 stacks are left over");
}

// ---- messages ----

class impatient_receivers {
 public:
  static constexpr node_id nodes = 3;
  static constexpr std::uint32_t each = 60;

  explicit impatient_receivers(std::uint64_t seed) : p(seed, {.nodes = nodes}) {
    p.cut_now_and_then(nodes);
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [this, n] {
        endpoint mine;
        inboxes_[n] = mine.id();
        await_all();
        for (std::uint32_t next = 0; next < each;) receive(mine, next);
        EXPECT_FALSE(mine.probe().has_value());
      });
      p.begin(n, [this, n] { send_all(static_cast<node_id>((n + 1) % nodes)); });
    }
  }
  void run() {
    p.run();
    EXPECT_GT(in_time, 0U);
    EXPECT_GT(timed_out, 0U);
    EXPECT_GT(cancelled, 0U);
    EXPECT_GT(too_large, 0U);
  }

  program_job p;
  unsigned in_time = 0, timed_out = 0, cancelled = 0, too_large = 0;

 private:
  void await_all() {
    while (std::count(inboxes_.begin(), inboxes_.end(), endpoint_id()) != 0) p.pause(10'000);
  }

  void send_all(node_id to) {
    endpoint mine;
    await_all();
    for (std::uint32_t i = 0; i < each; ++i) {
      // Some are fetched by their receiver.
      const std::vector<std::uint32_t> numbers(p.below(8) == 0 ? many : 2, i);
      mine.send(inboxes_[to], 0, numbers);
      p.pause(400'000);
    }
  }

  void receive(endpoint& mine, std::uint32_t& next) {
    std::vector<std::uint32_t> numbers(p.below(6) == 0 ? 1 : many);
    transfer t = mine.start_receive(numbers);
    try {
      while (t.valid()) {
        const auto limit_ns = static_cast<std::int64_t>(p.below(500'000));
        const std::int64_t begun_ns = p.now_ns();
        auto m = t.wait_for(nanoseconds(limit_ns));
        EXPECT_LE(p.now_ns() - begun_ns, limit_ns + turn_ns);
        if (m) {
          ++in_time;
        } else {
          ++timed_out;
          EXPECT_GE(p.now_ns() - begun_ns, limit_ns);
          EXPECT_TRUE(t.valid());
          if (p.below(2) == 0) continue;
          if (t.cancel()) {
            ++cancelled;
            break;
          }
          m = t.wait();  // its bytes are on their way
        }
        const std::size_t n = m->count_of<std::uint32_t>();
        EXPECT_EQ(numbers.front(), next);
        EXPECT_EQ(numbers[n - 1], next);
        ++next;
      }
    } catch (const message_too_large_error& e) {
      ++too_large;
      EXPECT_GE(e.which().bytes, 2 * sizeof(std::uint32_t));
    }
    expect_used(t);
  }

  static constexpr std::size_t many = 40'000;
  std::array<endpoint_id, nodes> inboxes_{};
};

TEST(simulated_deadlines, lose_no_message_that_comes_later) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    impatient_receivers(seed).run();
  }
}

TEST(simulated_deadlines, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    impatient_receivers r(7);
    r.run();
    return std::tuple(r.p.outcome(), r.in_time, r.timed_out, r.cancelled, r.too_large);
  };
  EXPECT_EQ(outcome(), outcome());
}

// ---- units of a semaphore of another node ----

bool take_within(counting_semaphore<>& units, std::int64_t limit_ns) {
  return units.try_acquire_for(nanoseconds(limit_ns));
}
// For the test of the test: who has waited long enough believes that it has one.
bool take_at_last(counting_semaphore<>& units, std::int64_t limit_ns) {
  (void)take_within(units, limit_ns);
  return true;
}

constexpr unsigned units_in_all = 3;

// How many had one at the same time.
template <auto Take>
unsigned most_users_of_units(std::uint64_t seed) {
  constexpr node_id nodes = 4;
  constexpr bool is_mutated = Take != &take_within;
  program_job p(seed, {.nodes = nodes});
  p.cut_now_and_then(nodes);
  unsigned users = 3 * nodes, inside = 0, most = 0, refused = 0;
  p.begin(static_cast<node_id>(p.below(nodes)), [&] {
    named<counting_semaphore<>> units("units", units_in_all);
    while (users != 0) p.pause(program_job::ms);
    if (is_mutated) return;
    for (unsigned i = 0; i < units_in_all; ++i) EXPECT_TRUE(units->try_acquire());
    EXPECT_FALSE(units->try_acquire()) << "a unit too many";
  });
  for (unsigned i = 0; i < 3 * nodes; ++i) {
    p.begin(static_cast<node_id>(i % nodes), [&] {
      const auto units = resource<counting_semaphore<>>::await("units");
      for (int round = 0; round < 15; ++round) {
        const auto limit_ns = static_cast<std::int64_t>(p.below(2 * program_job::ms));
        const std::int64_t begun_ns = p.now_ns();
        if (!units.call<Take>(limit_ns)) {
          ++refused;
          EXPECT_GE(p.now_ns() - begun_ns, limit_ns);
          continue;
        }
        most = std::max(most, ++inside);
        p.pause(program_job::ms);
        --inside;
        semaphore_handle(units).release();
      }
      --users;
    });
  }
  p.run();
  if (!is_mutated) {
    EXPECT_GT(refused, 0U);
  }
  return most;
}

TEST(simulated_deadlines, of_semaphores_take_no_unit) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    EXPECT_EQ(most_users_of_units<&take_within>(seed), units_in_all);
    EXPECT_GT(most_users_of_units<&take_at_last>(seed), units_in_all)
        << "nothing here would notice a unit that nobody has";
  }
}

// ---- calls ----

std::map<std::uint32_t, unsigned>* calls_made = nullptr;

std::uint32_t answer_after(std::int64_t ns, std::uint32_t number) {
  ++(*calls_made)[number];
  this_thread::sleep_for(nanoseconds(ns));
  return 2 * number + 1;
}

// Who stops waiting for an answer does not take the call back: it is made once, and its answer can
// be had later.
TEST(simulated_deadlines, of_calls_leave_them_to_be_made_once) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    program_job p(seed, {.nodes = nodes});
    p.cut_now_and_then(nodes);
    std::map<std::uint32_t, unsigned> made;
    calls_made = &made;
    std::uint32_t begun = 0;
    unsigned in_time = 0, timed_out = 0;
    for (unsigned i = 0; i < 2 * nodes; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [&] {
        for (int round = 0; round < 12; ++round) {
          const on_node to{p.below(nodes)};
          const auto takes_ns = static_cast<std::int64_t>(p.below(program_job::ms));
          const auto limit_ns = static_cast<std::int64_t>(p.below(program_job::ms));
          const std::uint32_t number = begun++;
          const std::int64_t begun_ns = p.now_ns();
          begun_call answer(
              [to, takes_ns, number] { return call<answer_after>(to, takes_ns, number); });
          const bool is_in_time = answer.has_ended_within(nanoseconds(limit_ns));
          const std::int64_t waited_ns = p.now_ns() - begun_ns;
          EXPECT_LE(waited_ns, limit_ns + turn_ns);
          EXPECT_GE(waited_ns, is_in_time ? takes_ns : limit_ns);
          ++(is_in_time ? in_time : timed_out);
          EXPECT_EQ(answer.get(), 2 * number + 1);
          EXPECT_GE(p.now_ns() - begun_ns, takes_ns);
        }
      });
    }
    p.run();
    EXPECT_EQ(made.size(), begun);
    for (const auto& [number, times] : made) EXPECT_EQ(times, 1U) << "call " << number;
    EXPECT_GT(in_time, 0U);
    EXPECT_GT(timed_out, 0U);
  }
}

std::map<std::uint32_t, std::uint32_t>* answers_given = nullptr;
void answer_by_itself(std::int64_t ns, const std::vector<std::uint32_t>& numbers) {
  const std::uint32_t number = numbers.front();
  (*answers_given)[number] = answer_after(ns, number);
  if (number % 5 == 0) throw std::out_of_range("number " + std::to_string(number));
}

// Nor does who stops waiting for a thread end it: it can be awaited again, joined and let go.
TEST(simulated_deadlines, of_threads_of_other_nodes_leave_them_to_go_on) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    program_job p(seed, {.nodes = nodes});
    p.cut_now_and_then(nodes);
    std::map<std::uint32_t, unsigned> made;
    std::map<std::uint32_t, std::uint32_t> answered;
    calls_made = &made;
    answers_given = &answered;
    std::uint32_t begun = 0;
    unsigned in_time = 0, timed_out = 0, failed = 0;
    for (unsigned i = 0; i < 2 * nodes; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [&] {
        for (int round = 0; round < 12; ++round) {
          const on_node to{p.below(nodes)};
          const auto takes_ns = static_cast<std::int64_t>(p.below(program_job::ms));
          const std::uint32_t number = begun++;
          const std::int64_t begun_ns = p.now_ns();
          remote_thread t(to, call<answer_by_itself>(takes_ns, std::vector{number}));
          for (bool is_in_time = false; !is_in_time;) {
            const auto limit_ns = static_cast<std::int64_t>(p.below(program_job::ms));
            const std::int64_t from_ns = p.now_ns();
            is_in_time = t.wait_for(nanoseconds(limit_ns));
            EXPECT_LE(p.now_ns() - from_ns, limit_ns + turn_ns);
            ++(is_in_time ? in_time : timed_out);
            if (is_in_time) {
              EXPECT_GE(p.now_ns() - begun_ns, takes_ns);
              EXPECT_EQ(answered[number], 2 * number + 1);
            } else {
              EXPECT_GE(p.now_ns() - from_ns, limit_ns);
              if (p.below(4) == 0) break;  // joined all the same
            }
          }
          try {
            t.join();
            EXPECT_NE(number % 5, 0U);
          } catch (const std::exception& e) {
            EXPECT_EQ(number % 5, 0U) << e.what();
            ++failed;
          }
          EXPECT_EQ(answered[number], 2 * number + 1);
        }
      });
    }
    p.run();
    EXPECT_EQ(made.size(), begun);
    for (const auto& [number, times] : made) EXPECT_EQ(times, 1U) << "call " << number;
    EXPECT_GT(in_time, 0U);
    EXPECT_GT(timed_out, 0U);
    EXPECT_EQ(failed, (begun + 4) / 5);
  }
}

// ---- look-ups ----

constexpr std::int64_t ask_every_ns = 200'000;

std::optional<std::uint32_t> find_within(const std::string& name, const program_job& p,
                                         std::int64_t limit_ns) {
  const std::int64_t until_ns = p.now_ns() + limit_ns;
  for (;;) {
    const auto found = find_name<std::uint32_t>(name);
    if (found || p.now_ns() >= until_ns) return found;
    this_thread::sleep_for(nanoseconds(std::min(ask_every_ns, until_ns - p.now_ns())));
  }
}

TEST(simulated_deadlines, of_look_ups_find_what_is_published_before) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    constexpr std::uint32_t names = 20;
    program_job p(seed, {.nodes = nodes});
    p.cut_now_and_then(nodes);
    struct times {
      std::int64_t begun_ns = INT64_MAX, ended_ns = INT64_MAX;
    };
    std::array<times, names> published;
    const auto name_of = [](std::uint32_t i) { return "late " + std::to_string(i); };
    unsigned found = 0, not_found = 0;
    for (std::uint32_t i = 0; i < names; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [&, i] {
        p.pause(20 * program_job::ms);
        published[i].begun_ns = p.now_ns();
        publish(name_of(i), i);
        published[i].ended_ns = p.now_ns();
      });
    }
    for (unsigned t = 0; t < 6 * nodes; ++t) {
      p.begin(static_cast<node_id>(t % nodes), [&] {
        for (int round = 0; round < 8; ++round) {
          const auto i = static_cast<std::uint32_t>(p.below(names));
          const auto limit_ns = static_cast<std::int64_t>(p.below(5 * program_job::ms));
          const std::int64_t asked_ns = p.now_ns();
          const auto expect_no_name = [&] {
            ++not_found;
            EXPECT_GE(p.now_ns() - asked_ns, limit_ns);
          };
          const auto expect_name = [&](std::uint32_t number) {
            ++found;
            EXPECT_EQ(number, i);
            EXPECT_LE(published[i].begun_ns, p.now_ns());
          };
          if (p.below(2) == 0) {
            const auto number = find_within(name_of(i), p, limit_ns);
            if (number) {
              expect_name(*number);
            } else {
              expect_no_name();
              // Its home was asked, and has answered.
              EXPECT_GT(published[i].ended_ns, asked_ns) << name_of(i) << " was there";
            }
          } else {
            begun_call waits([name = name_of(i)] { return await_name<std::uint32_t>(name); });
            const bool in_time = waits.has_ended_within(nanoseconds(limit_ns));
            EXPECT_LE(p.now_ns() - asked_ns, limit_ns + turn_ns);
            if (!in_time) expect_no_name();
            expect_name(waits.get());
          }
        }
      });
    }
    p.run();
    EXPECT_GT(found, 0U);
    EXPECT_GT(not_found, 0U);
  }
}

// ---- a lost node ----

void sleep_on(std::int64_t ns) { this_thread::sleep_for(nanoseconds(ns)); }

// Waits with a limit go on until its loss is known, which ends those for something of another node
// and no others.
TEST(simulated_deadlines, end_early_for_a_lost_node_alone) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 20 * program_job::ms, .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    const program_job::crash crash = p.crash_one(nodes, 10 * program_job::ms, program_job::ms);
    const node_id victim = crash.victim;
    unsigned timed_out = 0, told = 0;
    for (node_id n = 0; n < nodes; ++n) {
      if (n == victim) continue;
      p.begin(n, [&] {
        endpoint mine;
        std::array<std::byte, 8> room;
        transfer t = mine.start_receive(room, any_endpoint_on(victim));
        try {
          while (!t.wait_for(nanoseconds(1 + p.below(program_job::ms)))) ++timed_out;
          ADD_FAILURE() << "nobody has sent anything";
        } catch (const node_lost_error& e) {
          ++told;
          EXPECT_EQ(e.node(), victim) << e.what();
          EXPECT_GT(p.now_ns(), crash.at_ns);
          EXPECT_LE(p.now_ns(), crash.at_ns + 2 * model.lost_after_ns);
        }
        expect_used(t);
      });
      p.begin(n, [&] {
        // Until the loss is known, and until those who sleep below go on.
        remote_thread lasting(on_node{victim}, call<sleep_on>(3 * model.lost_after_ns));
        while (!lasting.wait_for(nanoseconds(1 + p.below(program_job::ms)))) ++timed_out;
        try {
          lasting.join();
          ADD_FAILURE() << "its end is not told any more";
        } catch (const node_lost_error& e) {
          ++told;
          EXPECT_EQ(e.node(), victim) << e.what();
        }
      });
      p.begin(n, [&] {
        this_thread::sleep_for(nanoseconds(4 * model.lost_after_ns));
        EXPECT_GE(p.now_ns(), 4 * model.lost_after_ns);
        EXPECT_LE(p.now_ns(), 4 * model.lost_after_ns + turn_ns);
      });
    }
    p.run();
    EXPECT_EQ(told, 2 * (nodes - 1U));
    EXPECT_GT(timed_out, 0U);
  }
}

}  // namespace
}  // namespace strata::test

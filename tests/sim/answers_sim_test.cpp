// SPDX-License-Identifier: Apache-2.0
// Senders that wait for a word of the other node: flush(), and the end of a transfer that is taken
// back. A node that is lost ends the wait, and of what is taken back no thread there has a part.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "expected_error.hpp"
#include "program_job.hpp"
#include "strata/message.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

constexpr node_id there = 1;
constexpr std::size_t large_bytes = std::size_t{1} << 20;
// For a question and its answer, however often they are lost.
constexpr std::int64_t asked_within_ns = 100 * program_job::ms;

sim::job_model watched() {
  return {.nodes = 4, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
}

// Node `there` crashes at once, or is cut off and so can answer nothing, and crashes later.
void end_node_there(program_job& p, bool at_once) {
  if (at_once) return p.job->node(there).crash();
  for (node_id n = 0; n < watched().nodes; ++n) p.world.cut(there, n);
  p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(10 * program_job::ms)),
             [&p] { p.job->node(there).crash(); });
}

// An endpoint on node `there` which receives nothing, until `senders` are done.
struct deaf_endpoint {
  deaf_endpoint(program_job& p, unsigned senders) : left(senders) {
    p.begin(there, [this] {
      const endpoint mine;
      id = mine.id();
      while (left != 0) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
  }
  std::optional<endpoint_id> id{};
  unsigned left;
};

TEST(simulated_answers, to_flush_end_with_their_node) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool at_once : {false, true}) {
      program_job p(seed, watched(), program_job::disorderly);
      constexpr std::array<node_id, 2> senders{0, 2};
      deaf_endpoint deaf(p, senders.size());
      for (const node_id n : senders) {
        p.begin(n, [&] {
          while (!deaf.id) p.pause(100'000);
          endpoint mine;
          const auto it = [](const node_lost_error& e) { return e.node() == there; };
          bool flushes = false;
          expect_error<node_lost_error>(
              p, "flush", INT64_MAX,
              [&] {
                for (;;) {
                  mine.send_value(*deaf.id, 0, 7);
                  flushes = true;
                  mine.flush(*deaf.id);
                  flushes = false;
                }
              },
              it);
          EXPECT_TRUE(flushes) << "it was in progress when the node went";
          expect_error<node_lost_error>(
              p, "later flush", 0, [&] { mine.flush(*deaf.id); }, it);
          --deaf.left;
        });
      }
      p.world.at(program_job::ms + static_cast<std::int64_t>(p.below(5 * program_job::ms)),
                 [&] { end_node_there(p, at_once); });
      p.run();
    }
  }
}

// A send which has come so far that it waits there to be received.
transfer offered(program_job& p, endpoint& mine, const std::optional<endpoint_id>& to,
                 const std::vector<std::byte>& bytes) {
  while (!to) p.pause(100'000);
  transfer t = mine.start_send(*to, 0, bytes);
  this_thread::sleep_for(nanoseconds(asked_within_ns));
  EXPECT_FALSE(t.test());
  return t;
}

// Both ways by which a transfer ends unreceived.
void take_back(transfer t, bool by_assignment) {
  if (by_assignment) t = transfer();
}

TEST(simulated_answers, to_what_is_taken_back_need_no_thread_there) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_assignment : {false, true}) {
      constexpr std::int64_t long_ns = 100'000 * program_job::ms;
      bool next_is_long = false;
      sim::job_model model{.nodes = 2, .answers_while_busy = true};
      model.cost = [&next_is_long](const detail::task&) {
        return std::exchange(next_is_long, false) ? long_ns : std::int64_t{20};
      };
      program_job p(seed, model);
      bool is_back = false;
      std::optional<message_info> comes_afterwards;
      std::optional<endpoint_id> id;
      p.begin(there, [&] {
        endpoint mine;
        id = mine.id();
        // What computes meanwhile keeps this thread from its worker as well.
        while (!is_back) this_thread::sleep_for(nanoseconds(program_job::ms));
        comes_afterwards = mine.probe();
      });
      p.begin(0, [&] {
        endpoint mine;
        std::vector<std::byte> bytes(large_bytes);
        transfer t = offered(p, mine, id, bytes);
        next_is_long = true;
        p.begin(there, [] {});
        p.pause(100'000);
        EXPECT_FALSE(next_is_long) << "a thread there computes";
        const std::int64_t begun_ns = p.now_ns();
        take_back(std::move(t), by_assignment);
        EXPECT_LE(p.now_ns() - begun_ns, asked_within_ns);
        std::fill(bytes.begin(), bytes.end(), std::byte{0x55});
        is_back = true;
      });
      p.run([] { return true; }, 3 * long_ns);
      EXPECT_FALSE(comes_afterwards.has_value());
    }
  }
}

TEST(simulated_answers, to_what_is_taken_back_end_with_their_node) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_assignment : {false, true}) {
      for (const bool at_once : {false, true}) {
        program_job p(seed, watched(), program_job::disorderly);
        deaf_endpoint deaf(p, 1);
        p.begin(0, [&] {
          endpoint mine;
          const std::vector<std::byte> bytes(large_bytes);
          transfer t = offered(p, mine, deaf.id, bytes);
          // Around the question, which takes some microseconds.
          p.world.at(p.now_ns() + static_cast<std::int64_t>(p.below(10'000)),
                     [&] { end_node_there(p, at_once); });
          if (p.below(2) == 0) p.pause(10'000);
          const std::int64_t begun_ns = p.now_ns();
          take_back(std::move(t), by_assignment);
          EXPECT_LE(p.now_ns() - begun_ns, 3 * watched().lost_after_ns);
          --deaf.left;
        });
        p.run();
      }
    }
  }
}

}  // namespace
}  // namespace strata::test

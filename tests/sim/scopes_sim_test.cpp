// SPDX-License-Identifier: Apache-2.0
// Calls of task scopes on simulated nodes, over a network that misbehaves: each is made once, on
// whichever node, and a scope ends by a deadline if a node is lost meanwhile.
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program_job.hpp"
#include "strata/call.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

std::vector<unsigned> times_sent;  // by the number of an errand
unsigned sent_elsewhere;

// Gives its node up meanwhile.
node_id_t run_errand(unsigned number, node_id_t home, std::int64_t ns) {
  ++times_sent.at(number);
  const node_id_t here = strata::node_id();
  if (here != home) ++sent_elsewhere;
  this_thread::sleep_for(nanoseconds(ns));
  return here;
}
void fail_an_errand(unsigned number, node_id_t home) {
  (void)run_errand(number, home, 10'000);
  throw std::out_of_range(std::to_string(number));
}

// What is begun at home occupies the node, so that others can take some.
std::int64_t long_at_home(const detail::task& t) {
  return t.type->wire != nullptr ? 300'000 : 2'000;
}

auto outcome_of_many_scopes(std::uint64_t seed) {
  static constexpr node_id nodes = 4;
  constexpr unsigned scopes = 8, each = 12;
  times_sent.assign(scopes * each, 0);
  sent_elsewhere = 0;
  program_job p(seed, {.nodes = nodes, .cost = &long_at_home});
  p.cut_now_and_then(nodes);
  for (unsigned s = 0; s < scopes; ++s) {
    p.begin(static_cast<node_id>(s % 2), [&p, s] {
      const node_id_t home = strata::node_id();
      task_scope scope;
      std::vector<spawned<node_id_t>> made;
      unsigned stayed = 0, number = s * each;
      for (unsigned i = 0; i + 2 < each; ++i) {
        made.push_back(scope.spawn(
            call<run_errand>(number++, home, static_cast<std::int64_t>(p.below(300'000)))));
        if (i % 4 == 0) scope.spawn([&stayed] { ++stayed; });
      }
      // Some of them can be taken before sync().
      if (p.below(2) == 0) p.pause(program_job::ms);
      scope.sync();
      EXPECT_EQ(stayed, 3U);
      for (auto& m : made) EXPECT_LT(m.get(), nodes);
      while (number != (s + 1) * each) scope.spawn(call<fail_an_errand>(number++, home));
      try {
        scope.sync();
        ADD_FAILURE() << "both of them throw";
      } catch (const std::out_of_range&) {
      } catch (const remote_error& e) {
        EXPECT_NE(e.node(), home);
        EXPECT_EQ(e.type_name(), "std::out_of_range");
      }
    });
  }
  p.run();
  for (const unsigned times : times_sent) EXPECT_EQ(times, 1U);
  return std::tuple(p.outcome(), sent_elsewhere);
}

TEST(simulated_scopes, have_each_call_made_once_somewhere) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    (void)outcome_of_many_scopes(seed);
    EXPECT_GT(sent_elsewhere, 0U);
  }
}

TEST(simulated_scopes, are_replayed_exactly_by_their_seed) {
  EXPECT_EQ(outcome_of_many_scopes(7), outcome_of_many_scopes(7));
}

TEST(simulated_scopes, end_with_the_loss_of_a_node_that_has_a_call) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    constexpr unsigned calls = 200;
    times_sent.assign(calls, 0);
    sent_elsewhere = 0;
    const sim::job_model model{.nodes = nodes,
                               .cost = &long_at_home,
                               .lost_after_ns = 30 * program_job::ms,
                               .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    const auto lost_ns = program_job::ms + static_cast<std::int64_t>(p.below(program_job::ms));
    bool told = false;
    p.begin(0, [&] {
      task_scope scope;
      // Whoever has one when node 1 is lost has it for as long as that node lived.
      for (unsigned n = 0; n < calls; ++n)
        scope.spawn(call<run_errand>(n, node_id_t{0}, 2 * program_job::ms));
      try {
        scope.sync();
      } catch (const node_lost_error& e) {
        EXPECT_EQ(e.node(), 1);
        EXPECT_LE(p.now_ns(), lost_ns + 2 * model.lost_after_ns);
        told = true;
      }
    });
    p.world.at(lost_ns, [&] { p.job->node(1).crash(); });
    p.run();
    EXPECT_TRUE(told);
    p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);  // what others still do
  }
}

}  // namespace
}  // namespace strata::test

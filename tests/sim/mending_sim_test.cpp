// SPDX-License-Identifier: Apache-2.0
// Cables that are cut and come back, while everybody talks: what was sent arrives once and in
// order, and connections are made again, so that the next cut finds one that is left.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "talking_job.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t ms = 1'000'000;
// Beats are a tenth of the first; the second is short beside them.
constexpr std::int64_t lost_after_ns = 2'000 * ms, mends_after_ns = 50 * ms;

// What is said into a connection that the other end has given up, or does without: over TCP one
// hears of that, over UDP the network may swallow the word. Nothing else differs above the
// transports.
struct kind_of_network {
  const char* name;
  bool tells_of_ends;
};
class simulated_mending : public testing::TestWithParam<kind_of_network> {
 protected:
  static talking_job make(const cables& c, node_id nodes, std::uint64_t seed,
                          const sim::network_model& network, bool spares,
                          std::int64_t mends_ns = mends_after_ns) {
    return {c, nodes,         nodes,  seed,     network,
            0, lost_after_ns, spares, mends_ns, GetParam().tells_of_ends};
  }
};
INSTANTIATE_TEST_SUITE_P(networks, simulated_mending,
                         testing::Values(kind_of_network{"tcp", true},
                                         kind_of_network{"udp", false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

cables pair_of_nodes() {
  cables c;
  c.lay(0, 1, 5'000);
  return c;
}

// The two cables between two nodes, one after the other: the next one is cut when both nodes have
// the connection over the last one again.
class flapping {
 public:
  flapping(talking_job& t, node_id a, node_id b, std::uint64_t seed, unsigned times)
      : t_(t), a_(a), b_(b), random_(seed), left_(times), which_(below(2)) {
    later(300 * ms, [this] { cut(); });
  }
  [[nodiscard]] bool is_over() const { return left_ == 0; }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_.below(n)); }
  void later(std::int64_t at_most_ns, std::function<void()> what) {
    const auto in_ns =
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(at_most_ns)));
    t_.world.at(t_.world.now_ns() + in_ns, std::move(what));
  }
  [[nodiscard]] bool both_are_there() const {
    const auto has_both = [this](node_id x, node_id y) {
      return !t_.job->node(x).networks->detours().is_broken(y) && t_.job->node(x).has_spare(y);
    };
    return has_both(a_, b_) && has_both(b_, a_);
  }
  void cut() {
    if (below(2) == 0)
      t_.job->tear(a_, b_, which_);
    else
      t_.job->silence(a_, b_, which_);
    later(1'500 * ms, [this] { restore(); });
  }
  void restore() {
    t_.job->restore(a_, b_, which_);
    // Whoever is about to give up what was silent does so first; nobody bears two cuts at a time.
    t_.world.at(t_.world.now_ns() + 1'500 * ms, [this] { look(); });
  }
  void look() {
    if (!both_are_there()) return later(100 * ms, [this] { look(); });
    if (--left_ == 0) return;
    // The other one, or once more the same.
    if (below(4) != 0) which_ = 1 - which_;
    later(300 * ms, [this] { cut(); });
  }

  talking_job& t_;
  const node_id a_, b_;
  prng random_;
  unsigned left_;
  unsigned which_;
};

void expect_no_losses(talking_job& t) {
  for (node_id n = 0; n < t.job->size(); ++n)
    EXPECT_EQ(t.job->node(n).losses(), (std::map<node_id, std::string>()));
}

// No other way joins the two: what is not made again is missing the second time.
TEST_P(simulated_mending, either_cable_may_be_cut_again_once_both_are_back) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    talking_job t = make(pair_of_nodes(), 2, seed, misbehaving, true);
    t.until_ns = t.world.now_ns() + 15'000 * ms;
    t.pause_ns = 10 * ms;
    flapping f(t, 0, 1, seed, 8);
    t.end([&] { return f.is_over(); });
    expect_no_losses(t);
  }
}

// Without that the second cut ends the job: so the test above would fail.
TEST_P(simulated_mending, is_needed_for_the_second_cut) {
  for (const std::int64_t mends_ns : {std::int64_t{0}, mends_after_ns}) {
    talking_job t = make(pair_of_nodes(), 2, 1, {}, true, mends_ns);
    const std::int64_t began = t.world.now_ns();
    t.until_ns = began + 2'000 * ms;
    t.pause_ns = 10 * ms;
    t.world.at(began + 100 * ms, [&] { t.job->tear(0, 1, 0); });
    t.world.at(began + 200 * ms, [&] { t.job->restore(0, 1, 0); });
    t.world.at(began + 1'000 * ms, [&] { t.job->tear(0, 1, 1); });
    (void)t.world.run([&] { return t.world.now_ns() > began + 3'000 * ms; });
    const bool mends = mends_ns != 0;
    EXPECT_EQ(t.job->node(0).losses().empty(), mends);
    if (mends) t.end();
  }
}

// All pairs at once, each in its own time, in a ring whose nodes go on by others meanwhile.
TEST_P(simulated_mending, cables_come_and_go_everywhere) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    const auto nodes = static_cast<node_id>(3 + random.below(3));
    cables c;
    for (node_id n = 0; n < nodes; ++n)
      c.lay(n, static_cast<node_id>((n + 1) % nodes),
            static_cast<std::int64_t>(5'000 + random.below(100'000)));
    talking_job t = make(c, nodes, seed, misbehaving, true);
    t.until_ns = t.world.now_ns() + 10'000 * ms;
    t.pause_ns = 10 * ms;
    std::vector<std::unique_ptr<flapping>> all;
    for (node_id n = 0; n < nodes; ++n)
      all.push_back(std::make_unique<flapping>(t, n, static_cast<node_id>((n + 1) % nodes),
                                               random.next(), 4));
    t.end([&] {
      return std::all_of(all.begin(), all.end(), [](const auto& f) { return f->is_over(); });
    });
    expect_no_losses(t);
  }
}

// Two nodes share one network, or two; its cables are cut and put back at any time, however near to
// each other. Others join the two.
TEST_P(simulated_mending, who_is_gone_around_is_reached_directly_again) {
  for (const bool spares : {false, true}) {
    for (const std::uint64_t seed : seeds()) {
      STRATA_WITH_SEED(seed);
      prng random(seed);
      const auto nodes = static_cast<node_id>(3 + random.below(3));
      cables c;
      // All the same: the direct way is the best one.
      for (node_id n = 0; n < nodes; ++n) c.lay(n, static_cast<node_id>((n + 1) % nodes), 20'000);
      talking_job t = make(c, nodes, seed, misbehaving, spares);
      const std::int64_t began = t.world.now_ns();
      t.until_ns = began + 12'000 * ms;
      t.pause_ns = 10 * ms;
      const auto a = static_cast<node_id>(random.below(nodes));
      const auto b = static_cast<node_id>((a + 1) % nodes);
      for (unsigned which = 0; which < (spares ? 2U : 1U); ++which) {
        std::int64_t when = began;
        const auto later = [&](std::uint64_t at_most_ms) {
          return when += static_cast<std::int64_t>(random.below(at_most_ms * ms));
        };
        while (when < began + 8'000 * ms) {
          const bool in_silence = random.below(3) == 0;
          t.world.at(later(random.below(2) == 0 ? 300 : 1'500), [&t, a, b, which, in_silence] {
            in_silence ? t.job->silence(a, b, which) : t.job->tear(a, b, which);
          });
          t.world.at(later(random.below(2) == 0 ? 10 : 1'500),
                     [&t, a, b, which] { t.job->restore(a, b, which); });
        }
      }
      t.end([&] {
        return t.job->node(a).way_to(b).hops == 1 && t.job->node(b).way_to(a).hops == 1 &&
               !t.job->node(a).networks->detours().is_broken(b) &&
               !t.job->node(b).networks->detours().is_broken(a);
      });
      expect_no_losses(t);
      EXPECT_GT(t.job->attempts(), 0U);
    }
  }
}

// In a circle of three, one after the other: each time the two that are left are needed, so each
// has to be there again before the next is cut, and all have to know it.
TEST_P(simulated_mending, ways_come_back) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    talking_job t = make(triangle(), 3, seed, misbehaving, false);
    t.pause_ns = 10 * ms;
    t.until_ns = INT64_MAX;
    const auto all_is_direct = [&] {
      for (node_id n = 0; n < 3; ++n) {
        if (!t.job->node(n).networks->detours().cuts().empty()) return false;
        for (node_id m = 0; m < 3; ++m) {
          if (n != m && t.job->node(n).way_to(m).hops != 1) return false;
        }
      }
      return !t.job->node(0).networks->rerouting().is_changing();
    };
    for (int round = 0; round < 6; ++round) {
      const auto a = static_cast<node_id>(random.below(3)), b = static_cast<node_id>((a + 1) % 3);
      const bool in_silence = random.below(2) == 0;
      in_silence ? t.job->silence(a, b) : t.job->tear(a, b);
      ASSERT_TRUE(t.world.run([&] { return t.job->node(a).way_to(b).hops == 2; },
                              t.world.now_ns() + 5'000 * ms));
      t.job->restore(a, b);
      ASSERT_TRUE(t.world.run(all_is_direct, t.world.now_ns() + 5'000 * ms));
    }
    t.until_ns = t.world.now_ns() + 10 * ms;
    t.end();
    expect_no_losses(t);
  }
}

// What one of the two says waits behind what others say, so the other one tries again meanwhile.
// Both begin with the newer connection, and nothing ends again.
TEST_P(simulated_mending, who_is_about_to_begin_takes_a_newer_one) {
  talking_job t = make(triangle(), 3, 1, {}, false);
  const std::int64_t began = t.world.now_ns();
  t.until_ns = began + 1'000 * ms;
  t.pause_ns = 10 * ms;
  t.world.at(began + 100 * ms, [&] { t.job->tear(0, 1); });
  t.world.at(began + 110 * ms, [&] { t.job->restore(0, 1); });
  // For 200 ms: the first attempt is about to be made, and the second one 100 ms after that.
  t.world.at(began + 140 * ms, [&] { t.world.carry(0, 2, 250'000'000, t.world.now_ns(), [] {}); });
  t.end([&] {
    return t.job->node(0).networks->detours().cuts().empty() &&
           t.job->node(1).networks->detours().cuts().empty();
  });
  expect_no_losses(t);
  EXPECT_EQ(t.job->attempts(), 2U);
  const cluster::way_plan::words ended_once = {{{0, 1}, 2}};
  EXPECT_EQ(t.job->node(0).networks->rerouting().plan().about_connections, ended_once);
}

// A connection over a cable that is cut again and again as soon as it is made is tried less and
// less often.
TEST_P(simulated_mending, attempts_become_rare_where_nothing_returns) {
  talking_job t = make(pair_of_nodes(), 2, 1, {}, true);
  const std::int64_t began = t.world.now_ns();
  t.until_ns = began + 20'000 * ms;
  t.pause_ns = 100 * ms;
  t.world.at(began + 100 * ms, [&] { t.job->tear(0, 1, 0); });
  t.end();
  expect_no_losses(t);
  // 50, 100, 200 and then each 400 ms at most, and the limit of each attempt.
  EXPECT_GT(t.job->attempts(), 20U);
  EXPECT_LT(t.job->attempts(), 55U);
}

// Nothing is due on that node but the next look at spare connections, which are looked at more
// rarely.
void expect_nothing_to_mend(talking_job& t, node_id n) {
  const std::int64_t later = t.world.now_ns() + 10'000 * ms;
  EXPECT_EQ(t.job->node(n).networks->mend(later), later + 8 * mends_after_ns);
  expect_no_losses(t);
}

// Whose connection was about to be made again.
TEST_P(simulated_mending, forgets_who_has_left) {
  talking_job t = make(triangle(), 3, 1, {}, false);
  const std::int64_t began = t.world.now_ns();
  t.until_ns = began + 1'000 * ms;
  t.pause_ns = 10 * ms;
  bool has_left = false;
  t.world.at(began + 100 * ms, [&] { t.job->tear(1, 2); });
  t.world.at(began + 250 * ms, [&] { t.job->leave(1, [&] { has_left = true; }); });
  t.end([&] { return has_left; });
  // Until the last attempt has failed.
  (void)t.world.run([] { return false; }, t.world.now_ns() + 500 * ms);
  expect_nothing_to_mend(t, 2);
}

// Whose connections end when it has left, the spare one among them.
TEST_P(simulated_mending, forgets_who_left_before_their_connections_ended) {
  talking_job t = make(triangle(), 3, 1, {}, true);
  const std::int64_t began = t.world.now_ns();
  t.until_ns = began + 1'000 * ms;
  t.pause_ns = 10 * ms;
  bool has_left = false;
  t.world.at(began + 250 * ms, [&] { t.job->leave(1, [&] { has_left = true; }); });
  ASSERT_TRUE(t.world.run([&] { return has_left; }, began + 5'000 * ms));
  t.until_ns = t.world.now_ns() + 100 * ms;
  t.end();
  ASSERT_TRUE(t.job->node(2).has_spare(1));
  for (const unsigned which : {0, 1}) t.job->tear(1, 2, which);
  ASSERT_TRUE(
      t.world.run([&] { return !t.job->node(2).has_spare(1); }, t.world.now_ns() + 5'000 * ms));
  expect_nothing_to_mend(t, 2);
}

// By which the two have gone around each other so far: they need another detour to agree on a new
// connection.
TEST_P(simulated_mending, goes_on_when_who_was_between_has_left) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    cables c;
    c.lay(1, 2, 20'000);
    c.lay(1, 3, 20'000);
    c.lay(2, 3, 20'000);
    c.lay(0, 1, 100'000);
    c.lay(0, 2, 100'000);
    c.lay(0, 3, 100'000);
    talking_job t = make(c, 4, seed, misbehaving, false);
    t.pause_ns = 10 * ms;
    t.until_ns = INT64_MAX;
    const auto& rerouting = t.job->node(0).networks->rerouting();
    // What the two say to each other while one is about to leave, or has left there only, counts.
    const auto after_ns = static_cast<std::int64_t>(prng(seed).below(2'000'000));
    t.job->tear(1, 2);
    ASSERT_TRUE(
        t.world.run([&] { return t.job->node(1).way_to(2).hops == 2 && !rerouting.is_changing(); },
                    t.world.now_ns() + 5'000 * ms));
    bool has_left = false;
    t.job->leave(3, [&] { has_left = true; });
    if (seed % 2 == 0) t.world.at(t.world.now_ns() + after_ns, [&] { t.job->restore(1, 2); });
    ASSERT_TRUE(t.world.run([&] { return has_left; }, t.world.now_ns() + 5'000 * ms));
    if (seed % 2 != 0) t.job->restore(1, 2);
    t.until_ns = t.world.now_ns() + 1'000 * ms;
    t.end([&] { return t.job->node(1).way_to(2).hops == 1 && t.job->node(2).way_to(1).hops == 1; });
    expect_no_losses(t);
  }
}

// Which has a connection at one end only when the cable is cut once more.
TEST_P(simulated_mending, closes_what_waits_for_the_word_of_one_that_leaves) {
  talking_job t = make(triangle(), 3, 1, {}, false);
  const std::int64_t began = t.world.now_ns();
  t.until_ns = began + 1'000 * ms;
  t.pause_ns = 10 * ms;
  t.world.at(began + 100 * ms, [&] { t.job->tear(1, 2); });
  t.world.at(began + 110 * ms, [&] { t.job->restore(1, 2); });
  const auto& networks = *t.job->node(1).networks;
  ASSERT_TRUE(
      t.world.run([&] { return networks.holds_connection_to(2); }, t.world.now_ns() + 1'000 * ms));
  t.job->silence(1, 2);
  bool has_left = false;
  t.job->leave(2, [&] { has_left = true; });
  t.end([&] { return has_left; });
  EXPECT_FALSE(networks.holds_connection_to(2));
  expect_no_losses(t);
}

}  // namespace
}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Cables that are cut and come back while nodes come and leave, and all talk: what was sent arrives
// once and in order, and nobody is lost.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "talking_job.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t msec = 1'000'000;

struct kind_of_cables {
  const char* name;
  bool spares;         // two between any two nodes
  bool tells_of_ends;  // see simulated_mending
};
class simulated_comers_and_cuts : public testing::TestWithParam<kind_of_cables> {};
INSTANTIATE_TEST_SUITE_P(cables, simulated_comers_and_cuts,
                         testing::Values(kind_of_cables{"tcp", false, true},
                                         kind_of_cables{"udp", false, false},
                                         kind_of_cables{"tcp_twice", true, true},
                                         kind_of_cables{"udp_twice", true, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

class changing_job {
 public:
  changing_job(std::uint64_t seed, const kind_of_cables& what)
      : what_(what),
        random_(seed),
        talk_(lay(random_), founders, capacity, seed, misbehaving, 0, 2'000 * msec, what.spares,
              50 * msec, what.tells_of_ends) {
    for (node_id n = 0; n < founders; ++n) there_.insert(n);
    talk_.pause_ns = 5 * msec;
    talk_.until_ns = talk_.world.now_ns() + 6'000 * msec;
    later(200 * msec, [this] { cut(); });
    later(50 * msec, [this] { change(); });
  }
  void run() {
    talk_.end([this] { return cuts_left_ == 0 && changes_left_ == 0 && changing_ == 0; });
    for (node_id n = 0; n < talk_.job->size(); ++n)
      EXPECT_EQ(talk_.job->node(n).losses(), (std::map<node_id, std::string>())) << n;
    EXPECT_GT(came_, 0U);
    EXPECT_GT(gone_, 0U);
  }

 private:
  // The first three stay: they reach everybody, also when one cable between two of them is cut.
  static constexpr node_id stay = 3, founders = 5, capacity = 16;

  static cables lay(prng& random) {
    cables c;
    const auto cost = [&random] { return static_cast<std::int64_t>(5'000ULL << random.below(5)); };
    for (node_id n = 1; n < capacity; ++n) {
      for (node_id other = 0; other < n; ++other) {
        if (n < founders || other < 2 || random.below(3) == 0) c.lay(other, n, cost());
      }
    }
    return c;
  }
  void later(std::int64_t at_most_ns, std::function<void()> what) {
    const auto in_ns = random_.below(static_cast<std::uint64_t>(at_most_ns));
    talk_.world.at(talk_.world.now_ns() + static_cast<std::int64_t>(in_ns), std::move(what));
  }

  // ---- cables, one after the other ----
  void cut() {
    const auto last = static_cast<node_id>(random_.below(4) == 0 ? founders : stay);
    a_ = static_cast<node_id>(random_.below(last));
    b_ = static_cast<node_id>((a_ + 1 + random_.below(last - 1U)) % last);
    which_ = what_.spares ? static_cast<unsigned>(random_.below(2)) : 0;
    if (!are_there()) return later(50 * msec, [this] { cut(); });
    const bool in_silence = random_.below(3) == 0;
    in_silence ? talk_.job->silence(a_, b_, which_) : talk_.job->tear(a_, b_, which_);
    later(random_.below(3) == 0 ? 20 * msec : 1'000 * msec, [this] {
      talk_.job->restore(a_, b_, which_);
      // Whoever is about to give up what was silent does so first.
      talk_.world.at(talk_.world.now_ns() + 1'500 * msec, [this] { look(); });
    });
  }
  void look() {
    if (are_there() && !(is_whole(a_, b_) && is_whole(b_, a_)))
      return later(100 * msec, [this] { look(); });
    if (--cuts_left_ != 0) later(100 * msec, [this] { cut(); });
  }
  [[nodiscard]] bool are_there() const { return there_.contains(a_) && there_.contains(b_); }
  [[nodiscard]] bool is_whole(node_id x, node_id y) {
    return !talk_.job->node(x).networks->detours().is_broken(y) &&
           (!what_.spares || talk_.job->node(x).has_spare(y));
  }

  // ---- nodes ----
  void change() {
    std::vector<node_id> may_leave;
    for (const node_id n : there_) {
      if (n >= stay && !asked_.contains(n)) may_leave.push_back(n);
    }
    const bool may_come = talk_.job->size() + coming_ < capacity;
    if (may_come && (may_leave.empty() || random_.below(2) == 0))
      come();
    else if (!may_leave.empty())
      leave(may_leave[random_.below(may_leave.size())]);
    if (--changes_left_ != 0) later(500 * msec, [this] { change(); });
  }
  void come() {
    ++changing_;
    ++coming_;
    const auto is_over = [this] {
      --coming_;
      --changing_;
    };
    talk_.job->come(
        [this, is_over](node_id n) {
          ++came_;
          there_.insert(n);
          talk_.speak(n);
          is_over();
        },
        [is_over](node_id) { is_over(); });
  }
  void leave(node_id n) {
    ++changing_;
    asked_.insert(n);
    talk_.job->leave(
        n,
        [this, n] {
          ++gone_;
          there_.erase(n);
          --changing_;
        },
        [this, n] {
          asked_.erase(n);
          --changing_;
        });
  }

  const kind_of_cables what_;
  prng random_;
  talking_job talk_;
  std::set<node_id> there_, asked_;
  node_id a_ = 0, b_ = 1;
  unsigned which_ = 0;
  unsigned cuts_left_ = 5, changes_left_ = 20, changing_ = 0, coming_ = 0, came_ = 0, gone_ = 0;
};

TEST_P(simulated_comers_and_cuts, lose_and_double_nothing) {
  std::vector<std::uint64_t> all = seeds();
  // Of a node that parts, a cable is cut by which others have answered.
  if (all.size() > 1) all.push_back(17'146'209'715'087);
  for (const std::uint64_t seed : all) {
    STRATA_WITH_SEED(seed);
    changing_job(seed, GetParam()).run();
  }
}

// It says no last word, and the launcher may tell of its end before a network does.
TEST(simulated_comers, who_ended_while_it_came_is_sought_by_nobody) {
  constexpr node_id founders = 3, comer = 3;
  constexpr std::int64_t lost_after_ns = 100 * msec;
  cables c;
  for (node_id n = 1; n <= comer; ++n) {
    for (node_id other = 0; other < n; ++other) c.lay(other, n, 5'000);
  }
  talking_job t(c, founders, comer + 1, 1, {}, 0, lost_after_ns);
  t.until_ns = t.world.now_ns();
  // What the others say to the comer about this nobody will confirm.
  t.job->when_made = [&](node_id n) {
    t.job->node(n).crash();
    t.job->tear(0, 1);
  };
  bool refused = false;
  t.job->come({}, [&](node_id) { refused = true; });
  ASSERT_TRUE(t.world.run([&] { return refused; }, t.world.now_ns() + lost_after_ns));
  t.world.run([] { return false; }, t.world.now_ns() + lost_after_ns);
  unsigned by_detours = 0;
  for (node_id n = 0; n < founders; ++n) {
    t.job->node(n).hears = [&](node_id, kind k, std::span<const std::byte>) {
      by_detours += k == kind::detour ? 1 : 0;
      return false;
    };
    t.job->node(n).connections().lose(comer, "closed the connection");
  }
  t.world.run([] { return false; }, t.world.now_ns() + lost_after_ns);
  EXPECT_EQ(by_detours, 0U);
  for (node_id n = 0; n < founders; ++n) {
    EXPECT_FALSE(t.job->node(n).networks->detours().is_cut(comer)) << n;
    EXPECT_TRUE(t.job->node(n).losses().empty()) << n;
  }
}

}  // namespace
}  // namespace strata::test

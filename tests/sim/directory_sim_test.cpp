// SPDX-License-Identifier: Apache-2.0
// The directory of names on many simulated nodes: published, looked up where nodes remember them,
// withdrawn, while nodes come, leave with what they have published, and are lost.
#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "program_job.hpp"
#include "strata/directory.hpp"

namespace strata::test {
namespace {

using net::node_id;
using moment = std::int64_t;

constexpr moment never = INT64_MAX;

// What the test knows of one publish(): from when on the name may be found and has to be, and from
// when on it need not and must not.
struct publication {
  std::string name;
  node_id by = 0;
  moment may_be_found = never, has_to_be = never;
  moment need_not_be = never, must_not_be = never;

  [[nodiscard]] bool is_certain(moment from, moment to) const {
    return has_to_be < from && to < need_not_be;
  }
  [[nodiscard]] bool is_possible(moment from, moment to) const {
    return may_be_found <= to && from <= must_not_be;
  }
};

struct published_number {
  std::uint32_t number;
};

class names_of_many {
 public:
  static constexpr node_id founders = 4, capacity = 6;

  explicit names_of_many(std::uint64_t seed, bool changes) : p(seed, model_of(changes)) {
    for (node_id n = 0; n < founders; ++n) populate(n);
    if (!changes) return;
    // Two come and two of the founders leave, and a comer.
    for (const node_id n : {node_id{1}, node_id{2}}) leave_at(drawn(), n);
    for (int i = 0; i < 2; ++i) {
      ++changes_left_;
      p.world.at(drawn(), [this] {
        p.job->come([this](node_id n) {
          --changes_left_;
          populate(n);
          if (n == founders) leave_at(p.now_ns() + drawn(), n);
        });
      });
    }
  }

  void run() {
    EXPECT_TRUE(p.world.run([&] { return owners_ == 0 && changes_left_ == 0; }, 60'000 * p.ms))
        << owners_ << " publishers do not end, nor " << changes_left_ << " changes";
    // So that nobody waits for ever.
    p.begin(0, [this] {
      for (const std::string& name : names_) publish_one(name);
    });
    p.run();
    EXPECT_GT(found_, 0);
    EXPECT_GT(not_found_, 0);
    EXPECT_GT(refused_, 0);
  }

  program_job p;

 private:
  static sim::job_model model_of(bool changes) {
    return {.nodes = changes ? capacity : founders, .founders = changes ? founders : node_id{0}};
  }
  moment drawn() { return static_cast<moment>(p.below(60 * program_job::ms)); }

  void leave_at(moment when, node_id n) {
    ++changes_left_;
    p.world.at(when, [this, n] {
      leaves_[n] = true;
      for (publication& one : all_) {
        if (one.by == n) one.need_not_be = std::min(one.need_not_be, p.now_ns());
      }
      p.job->leave(n, [this, n] {
        --changes_left_;
        // Everybody has heard of it.
        for (publication& one : all_) {
          if (one.by == n) one.must_not_be = std::min(one.must_not_be, p.now_ns());
        }
      });
    });
  }

  void populate(node_id n) {
    for (int i = 0; i < 2; ++i) {
      ++owners_;
      p.begin(n, [this, n] {
        while (p.now_ns() < until_ns && !leaves_[n]) own_for_a_while(n);
        --owners_;
      });
    }
    for (int i = 0; i < 3; ++i) {
      p.begin(n, [this, n] {
        while (p.now_ns() < until_ns && !leaves_[n]) {
          look_up(n);
          p.pause(300'000);
        }
      });
    }
  }

  const std::string& any_name() { return names_[p.below(names_.size())]; }

  // Null: the name was taken.
  publication* publish_one(const std::string& name) {
    const auto number = static_cast<std::uint32_t>(all_.size());
    publication& mine = all_.emplace_back();
    mine.name = name;
    mine.by = strata::node_id();
    mine.may_be_found = p.now_ns();
    try {
      publish(name, published_number{number});
    } catch (const name_in_use_error&) {
      ++refused_;
      const moment begun = std::exchange(mine.may_be_found, never);
      EXPECT_TRUE(std::any_of(all_.begin(), all_.end(),
                              [&](const publication& other) {
                                return other.name == name && other.is_possible(begun, p.now_ns());
                              }))
          << name << " was refused although nobody had it";
      return nullptr;
    }
    mine.has_to_be = p.now_ns();
    if (leaves_[mine.by]) mine.need_not_be = mine.has_to_be;
    for (const publication& other : all_) {
      if (&other == &mine || other.name != name) continue;
      EXPECT_FALSE(other.is_certain(mine.may_be_found, mine.has_to_be)) << name << " is two";
    }
    return &mine;
  }

  void own_for_a_while(node_id n) {
    publication* const mine = publish_one(any_name());
    p.pause(2 * program_job::ms);
    // Some names go with their node.
    if (mine == nullptr || (leaves_[n] && p.below(2) == 0)) return;
    mine->need_not_be = std::min(mine->need_not_be, p.now_ns());
    EXPECT_TRUE(withdraw(mine->name)) << mine->name << " of node " << n << " was not there";
    mine->must_not_be = p.now_ns();
  }

  void look_up(node_id n) {
    const std::string& name = any_name();
    const moment begun = p.now_ns();
    // Who is about to leave must not wait for others.
    const bool waits = n == 0 && p.below(4) == 0;
    const auto it = waits ? await_name<published_number>(name) : find_name<published_number>(name);
    if (!it) {
      ++not_found_;
      for (const publication& one : all_) {
        if (one.name != name) continue;
        EXPECT_FALSE(one.is_certain(begun, p.now_ns())) << name << " is lost";
      }
      return;
    }
    ++found_;
    ASSERT_LT(it->number, all_.size());
    const publication& one = all_[it->number];
    EXPECT_EQ(one.name, name);
    EXPECT_TRUE(one.is_possible(begun, p.now_ns()))
        << name << " of node " << one.by << " is found by node " << n << " at " << begun
        << ", and is gone since " << one.must_not_be;
    if (leaves_[one.by]) return;  // this node may not have heard of that
    for (const publication& other : all_) {
      if (&other == &one || other.name != name) continue;
      EXPECT_FALSE(other.is_certain(begun, p.now_ns()))
          << name << " of node " << other.by << " is published, and node " << n
          << " finds that of node " << one.by;
    }
  }

  static constexpr moment until_ns = 150 * program_job::ms;
  const std::array<std::string, 12> names_{"ash",   "beech", "cedar", "date", "elm",   "fir",
                                           "guava", "hazel", "ivy",   "jute", "kapok", "larch"};
  std::deque<publication> all_;
  std::array<bool, capacity> leaves_{};
  int owners_ = 0, changes_left_ = 0;
  int found_ = 0, not_found_ = 0, refused_ = 0;
};

TEST(simulated_directory, finds_what_is_published_and_nothing_that_is_withdrawn) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    names_of_many(seed, false).run();
  }
}

TEST(simulated_directory, outlives_nodes_that_come_and_leave) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    names_of_many(seed, true).run();
  }
}

TEST(simulated_directory, is_replayed_exactly_by_its_seed) {
  const auto outcome = [] {
    names_of_many job(7, true);
    job.run();
    return job.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

// Each of a thousand threads of every node waits for a name of its own before any is published.
// Whoever asks once more, or asks for another's, sends nothing, if its node has heard of it.
TEST(simulated_directory, gives_a_thousand_names_at_once_and_remembers_them) {
  const unsigned names = address_sanitizer ? 100 : 1000;
  constexpr node_id nodes = 3;
  for (const std::uint64_t seed : {std::uint64_t{1}, seeds().back()}) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes});
    const auto name_of = [](unsigned i) { return "name " + std::to_string(i); };
    unsigned right = 0;
    for (node_id n = 0; n < nodes; ++n) {
      for (unsigned i = 0; i < names; ++i) {
        p.begin(n,
                [&, i] { right += await_name<published_number>(name_of(i)).number == i ? 1 : 0; });
      }
    }
    p.world.run([] { return false; }, 500 * program_job::ms);
    EXPECT_EQ(right, 0U);
    EXPECT_EQ(p.threads(), nodes * names);
    p.begin(1, [&] {
      for (unsigned i = 0; i < names; ++i) publish(name_of(i), published_number{i});
    });
    p.run();
    EXPECT_EQ(right, nodes * names);

    const auto sent = [&] {
      std::uint64_t all = 0;
      for (node_id n = 0; n < nodes; ++n) all += p.job->node(n).protocols.counts.sent.load();
      return all;
    };
    const std::uint64_t before = sent();
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [&] {
        for (unsigned i = 0; i < names; ++i)
          right += find_name<published_number>(name_of(i)).has_value() ? 1 : 0;
      });
    }
    p.run();
    EXPECT_EQ(right, 2 * nodes * names);
    EXPECT_EQ(sent(), before);
  }
}

// Many threads of many nodes ask for all of them at the same time, each in another order. Withdrawn
// ones are found by nobody afterwards, whoever remembered them. leaves_out_a_step: their home tells
// nobody.
unsigned found_though_withdrawn(std::uint64_t seed, bool leaves_out_a_step) {
  constexpr node_id nodes = 16;
  constexpr unsigned threads = 10;
  const unsigned names = address_sanitizer ? 200 : 1000;
  program_job p(seed, {.nodes = nodes});
  p.cut_now_and_then(nodes);
  const auto name_of = [](unsigned i) { return "one of many " + std::to_string(i); };
  for (node_id n = 0; n < nodes; ++n) {
    p.begin(n, [&, n] {
      for (unsigned i = n; i < names; i += nodes) publish(name_of(i), published_number{i});
    });
  }
  p.run();

  unsigned right = 0;
  for (unsigned t = 0; t < threads * nodes; ++t) {
    p.begin(static_cast<node_id>(t % nodes), [&, t] {
      // All of a node's threads together ask for each.
      const auto begin = static_cast<unsigned>(p.below(names));
      for (unsigned i = t / nodes; i < names; i += threads) {
        const unsigned name = (begin / threads * threads + i) % names;
        const auto found = find_name<published_number>(name_of(name));
        right += found && found->number == name ? 1 : 0;
      }
    });
  }
  p.run();
  EXPECT_EQ(right, names * nodes);

  std::vector<unsigned> withdrawn;
  for (unsigned i = 0; i < names; i += 1 + static_cast<unsigned>(p.below(20)))
    withdrawn.push_back(i);
  for (const unsigned i : withdrawn) {
    const auto by = static_cast<node_id>(p.below(nodes));
    if (!leaves_out_a_step) {
      p.begin(by, [&, i] { EXPECT_TRUE(withdraw(name_of(i))); });
      continue;
    }
    const auto home = p.job->node(by).messenger.home_of(std::hash<std::string>()(name_of(i)));
    std::set<node_id> remembered_by;
    messages::directory& there = p.job->node(home).messenger.names;
    const std::uint64_t one = there.begin_to_withdraw(name_of(i), 0, remembered_by);
    EXPECT_NE(one, 0U);
    there.end_withdrawal(name_of(i), one);
  }
  p.run();
  unsigned still_found = 0;
  for (node_id n = 0; n < nodes; ++n) {
    p.begin(n, [&] {
      for (const unsigned i : withdrawn)
        still_found += find_name<published_number>(name_of(i)).has_value() ? 1 : 0;
    });
  }
  p.run();
  return still_found;
}

TEST(simulated_directory, forgets_on_many_nodes_what_all_have_asked_for_at_once) {
  for (const std::uint64_t seed : {std::uint64_t{1}, seeds().back()}) {
    STRATA_WITH_SEED(seed);
    EXPECT_EQ(found_though_withdrawn(seed, false), 0U);
    EXPECT_GT(found_though_withdrawn(seed, true), 0U) << "nobody would notice";
  }
}

// A node that computes answers late. Were the others told after it, or those behind it after them,
// a name would be withdrawn when all of them have answered in turn.
TEST(simulated_directory, tells_all_at_once_to_forget) {
  constexpr node_id nodes = 9;
  const std::string name = "known to all";
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = nodes});
    for (node_id n = 0; n < nodes; ++n)
      p.begin(n, [&] { (void)await_name<published_number>(name); });
    p.begin(0, [&] { publish(name, published_number{7}); });
    p.run();

    const node_id home = p.job->node(0).messenger.home_of(std::hash<std::string>()(name));
    unsigned told = 0, told_before_the_first_answer = 0;
    p.job->node(home).says = [&](node_id, cluster::kind k) {
      told += k == cluster::kind::invoke ? 1 : 0;
    };
    p.job->node(home).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      if (k == cluster::kind::returned && told_before_the_first_answer == 0)
        told_before_the_first_answer = told;
      return false;
    };
    p.begin(home, [&] { EXPECT_TRUE(withdraw(name)); });
    p.run();
    EXPECT_EQ(told_before_the_first_answer, nodes - 1);
  }
}

// With a node all threads that wait for a name, or ask for one, learn of its loss, on every node.
TEST(simulated_directory, lets_nobody_wait_for_a_name_once_a_node_is_lost) {
  constexpr node_id nodes = 4;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 50 * program_job::ms, .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    const auto victim = static_cast<node_id>(p.below(nodes));
    unsigned told = 0;
    for (node_id n = 0; n < nodes; ++n) {
      for (int i = 0; i < 40; ++i) {
        p.begin(n, [&, n, i] {
          const std::string name = "never " + std::to_string(p.below(30));
          try {
            if (i % 2 == 0) (void)await_name<published_number>(name);
            for (;;) {
              (void)find_name<published_number>(name);
              p.pause(program_job::ms);
            }
          } catch (const node_lost_error& e) {
            if (n == victim) return;
            EXPECT_EQ(e.node(), victim) << e.what();
            ++told;
          }
        });
      }
    }
    p.world.at(static_cast<moment>(p.below(20 * program_job::ms)),
               [&] { p.job->node(victim).crash(); });
    p.run();
    EXPECT_EQ(told, 40U * (nodes - 1));
  }
}

}  // namespace
}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Domains, the groups that are made of their members, and grids of them, on simulated nodes that
// come and leave: ranks belong to one member each, leavers make room, and who is there works
// together.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/domain.hpp"
#include "strata/grid.hpp"
#include "strata/group.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"

namespace strata::test {
namespace {

using net::node_id;

// ---- ranks ----

class members_of_a_domain {
 public:
  static constexpr node_id founders = 3, capacity = 6;

  explicit members_of_a_domain(std::uint64_t seed)
      : p(seed, {.nodes = capacity, .founders = founders}) {
    p.begin(0, [this] {
      named<domain> workers("workers");
      while (joining_ != 0 || changes_left_ != 0) p.pause(program_job::ms);
      // Whoever has left with its node is no member any more.
      EXPECT_EQ(workers->size(), 0U);
      EXPECT_EQ(workers->members_from(0).ranks, 0U);
    });
    for (node_id n = 0; n < founders; ++n) populate(n);
    for (node_id n = founders; n < capacity; ++n) {
      ++changes_left_;
      p.world.at(drawn(), [this] {
        p.job->come([this](node_id comer) {
          --changes_left_;
          populate(comer);
          if (comer % 2 == 0) leave_at(comer, p.now_ns() + drawn());
        });
      });
    }
    leave_at(1, drawn());
  }

  program_job p;
  unsigned joined = 0, members_that_left = 0, largest = 0;

 private:
  std::int64_t drawn() { return static_cast<std::int64_t>(p.below(30 * program_job::ms)); }

  void leave_at(node_id n, std::int64_t when_ns) {
    ++changes_left_;
    p.world.at(when_ns, [this, n] {
      leaves_[n] = true;
      p.job->leave(n, [this] { --changes_left_; });
    });
  }

  void populate(node_id n) {
    for (int i = 0; i < 3; ++i) {
      ++joining_;
      p.begin(n, [this, n, i] {
        endpoint mine;
        const bool stays = (n == 1 && i == 0) || leave_as_it_is(n);
        domain_handle workers = domain_handle::await("workers");
        for (int round = 0; round < 10 && !leaves_[n]; ++round)
          be_member_for_a_while(workers, mine);
        // As a member.
        if (stays) {
          claim(workers.join(mine.id()), mine.id());
          ++members_that_left;
          while (!leaves_[n]) p.pause(program_job::ms);
        }
        --joining_;
      });
    }
  }
  // Only of a node that leaves; one of node 1 always does.
  bool leave_as_it_is(node_id n) {
    return (n == 1 || (n >= founders && n % 2 == 0)) && p.below(2) == 0;
  }

  void claim(std::uint32_t rank, endpoint_id who) {
    endpoint_id& has_it = by_rank_[rank];
    if (has_it) {
      EXPECT_TRUE(leaves_[has_it.node()]) << "rank " << rank << " is two members'";
    }
    has_it = who;
    ++joined;
  }

  void be_member_for_a_while(domain_handle& workers, endpoint& mine) {
    const std::uint32_t rank = workers.join(mine.id());
    claim(rank, mine.id());
    EXPECT_EQ(workers.join(mine.id()), rank);
    p.pause(program_job::ms);
    const std::vector<endpoint_id> all = workers.members();
    largest = std::max(largest, static_cast<unsigned>(all.size()));
    EXPECT_EQ(std::count(all.begin(), all.end(), mine.id()), 1);
    if (rank < all.size()) {
      EXPECT_EQ(all[rank], mine.id());
    } else {
      ADD_FAILURE() << "rank " << rank << " of " << all.size();
    }
    EXPECT_GE(workers.size(), 1U);
    by_rank_[rank] = endpoint_id();
    EXPECT_TRUE(workers.leave(mine.id()));
    EXPECT_FALSE(workers.leave(mine.id()));
    p.pause(program_job::ms);
  }

  std::map<std::uint32_t, endpoint_id> by_rank_;  // of those who are members for certain
  std::array<bool, capacity> leaves_{};
  unsigned joining_ = 0, changes_left_ = 0;
};

TEST(simulated_domains, give_each_rank_to_one_member) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    members_of_a_domain job(seed);
    job.p.run();
    EXPECT_GT(job.joined, 0U);
    EXPECT_GT(job.largest, 1U);
    EXPECT_GT(job.members_that_left, 0U);
  }
}

TEST(simulated_domains, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    members_of_a_domain job(7);
    job.p.run();
    return std::tuple(job.p.outcome(), job.joined, job.members_that_left, job.largest);
  };
  EXPECT_EQ(outcome(), outcome());
}

// More than one answer has room for.
TEST(simulated_domains, tell_all_their_members) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    constexpr std::uint32_t each = 100;
    static_assert(nodes * each > 2 * domain::page::length);
    program_job p(seed, {.nodes = nodes});
    unsigned seen_all = 0;
    p.begin(0, [&] {
      named<domain> crowd("crowd");
      while (seen_all != nodes) p.pause(program_job::ms);
    });
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [&] {
        domain_handle crowd = domain_handle::await("crowd");
        std::vector<endpoint> mine(each);
        std::map<std::uint32_t, endpoint_id> ranks;
        for (const endpoint& e : mine) ranks[crowd.join(e.id())] = e.id();
        EXPECT_EQ(ranks.size(), each);
        crowd.await_size(nodes * each);
        const std::vector<endpoint_id> all = crowd.members();
        EXPECT_EQ(all.size(), nodes * each);
        EXPECT_EQ(std::count(all.begin(), all.end(), endpoint_id()), 0);
        for (const auto& [rank, id] : ranks) EXPECT_EQ(all.at(rank), id);
        ++seen_all;
      });
    }
    p.run();
  }
}

// ---- who is there works together ----

// In each round those nodes take part that are there for it: their threads find each other in a
// domain, make a group of its members, and a ring of them.
class rounds_of_work {
 public:
  static constexpr node_id founders = 3, capacity = 6;
  static constexpr unsigned rounds = 6, on_each = 2;

  explicit rounds_of_work(std::uint64_t seed) : p(seed, {.nodes = capacity, .founders = founders}) {
    for (node_id n = 1; n < capacity; ++n) {
      const auto a = static_cast<unsigned>(p.below(rounds));
      const auto b = static_cast<unsigned>(p.below(rounds));
      first_[n] = n < founders ? 0 : std::min(a, b);
      last_[n] = std::max(a, b);
    }
    first_[0] = 0;
    last_[0] = rounds - 1;
    p.begin(0, [this] {
      for (unsigned k = 0; k < rounds; ++k) lead_round(k);
    });
    for (node_id n = 0; n < founders; ++n) populate(n);
    for (node_id n = founders; n < capacity; ++n) {
      const auto when_ns = static_cast<std::int64_t>(p.below(10 * program_job::ms));
      p.world.at(when_ns, [this] { p.job->come([this](node_id comer) { populate(comer); }); });
    }
  }
  void run() {
    p.run([this] { return left_ == capacity - 1; });
    EXPECT_EQ(worked_, expected_);
  }

  program_job p;

 private:
  [[nodiscard]] std::uint32_t members_in(unsigned k) const {
    std::uint32_t n = 0;
    for (node_id i = 0; i < capacity; ++i) n += first_[i] <= k && k <= last_[i] ? on_each : 0;
    return n;
  }
  static std::string named_for(const char* what, unsigned k) { return what + std::to_string(k); }

  void lead_round(unsigned k) {
    named<domain> members(named_for("members ", k));
    // The last one alone, which is published, tells how they stand.
    publish(named_for("ring ", k), grid{.extent = {members_in(k)}, .wraps = {true}});
    expected_ += members_in(k);
    while (worked_ != expected_) p.pause(program_job::ms);
    EXPECT_TRUE(withdraw(named_for("ring ", k)));
  }

  void populate(node_id n) {
    for (unsigned i = 0; i < on_each; ++i) {
      ++working_[n];
      p.begin(n, [this, n] {
        for (unsigned k = first_[n]; k <= last_[n]; ++k) work(k);
        if (--working_[n] != 0 || n == 0) return;
        p.world.at(p.now_ns(), [this, n] { p.job->leave(n, [this] { ++left_; }); });
      });
    }
  }

  void work(unsigned k) {
    domain_handle members = domain_handle::await(named_for("members ", k));
    const auto ring = await_name<grid>(named_for("ring ", k));
    endpoint mine;
    const std::uint32_t rank = members.join(mine.id());
    const std::uint32_t all_in_all = ring.size();
    members.await_size(all_in_all);
    const std::vector<endpoint_id> ids = members.members();
    EXPECT_EQ(ids.size(), all_in_all);
    group together(mine, ids);
    EXPECT_EQ(together.rank(), rank);
    p.pause(200'000);
    EXPECT_EQ(together.all_reduce(rank + 1, std::plus<>()), all_in_all * (all_in_all + 1) / 2);
    // To those beside it, and from them.
    const std::vector<std::uint32_t> beside = ring.neighbours(rank);
    for (const std::uint32_t r : beside) mine.send_value(ids[r], k, rank);
    for (const std::uint32_t r : beside) EXPECT_EQ(mine.receive_value<std::uint32_t>(ids[r], k), r);
    together.barrier();
    ++worked_;
  }

  std::array<unsigned, capacity> first_{}, last_{}, working_{};
  std::uint32_t worked_ = 0, expected_ = 0;
  unsigned left_ = 0;
};

TEST(simulated_domains, make_groups_of_those_who_are_there) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    rounds_of_work(seed).run();
  }
}

}  // namespace
}  // namespace strata::test

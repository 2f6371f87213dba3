// SPDX-License-Identifier: Apache-2.0
// Nodes that come to a simulated job and leave it while it computes, on a network that misbehaves.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "deaf_node.hpp"
#include "sim/simulated_job.hpp"
#include "strata/detail/parking.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/remote_thread.hpp"
#include "support.hpp"
#include "tests/common/fib_tokens.hpp"

namespace strata::test {
namespace {

struct sum_of_fibs : threaded {
  int n;
  std::vector<long>* answers;
  long value = 0;
  void start() { token<fib_tokens>(n, to_global(&value), to_sptr(DONE)); }
  void done() {
    answers->push_back(value);
    terminate();
  }
  fiber<&sum_of_fibs::done> DONE{this, 1};
};

void expect_no_losses(sim::job& job) {
  for (net::node_id n = 0; n < job.size(); ++n)
    EXPECT_TRUE(job.node(n).losses().empty()) << "node " << n;
}

// A job whose nodes come and go at random, until all its computations have ended.
class coming_and_going {
 public:
  coming_and_going(std::uint64_t seed, const sim::network_model& network,
                   cluster::balancing how = cluster::balancing::random)
      : random_(seed), world_(network, seed), job_(world_, model(how)) {}

  static constexpr net::node_id founders = 3, capacity = 12;

  void run() {
    for (int i = 0; i < computations; ++i)
      job_.node(0).as_worker([&] { token<sum_of_fibs>(16, &answers_); });
    plan_change();
    job_.node(0).protocols.quiet.detect([&] { quiet_ = true; });
    const bool came_to_an_end =
        world_.run([&] { return quiet_ && changing_ == 0; }, 10'000'000'000);
    ASSERT_TRUE(came_to_an_end) << "nothing happens any more";
    EXPECT_EQ(job_.failure(), nullptr);
    EXPECT_EQ(answers_, std::vector<long>(computations, 987));
    std::uint64_t sent = 0, received = 0;
    for (net::node_id n = 0; n < job_.size(); ++n) {
      EXPECT_TRUE(job_.node(n).is_idle()) << "node " << n;
      sent += job_.node(n).protocols.counts.sent;
      received += job_.node(n).protocols.counts.received;
    }
    EXPECT_EQ(sent, received);
    EXPECT_GT(came_, 0U);
    EXPECT_GT(left_, 0U);
  }
  [[nodiscard]] std::uint64_t work_of_comers() {
    std::uint64_t all = 0;
    for (net::node_id n = founders; n < job_.size(); ++n) all += job_.node(n).tasks();
    return all;
  }

 private:
  static constexpr int computations = 8;

  static sim::job_model model(cluster::balancing how) {
    return {.nodes = capacity, .founders = founders, .how = how, .cost = two_microseconds};
  }

  void plan_change() {
    world_.at(world_.now_ns() + static_cast<std::int64_t>(random_.below(1'000'000)),
              [this] { begin_change(); });
  }

  void begin_change() {
    if (quiet_ || began_ == 16) return;
    ++began_;
    // Several at once: whoever has not come cannot leave.
    std::vector<net::node_id> there;
    for (net::node_id n = 1; n < job_.size(); ++n) {
      if (std::find(leaving_.begin(), leaving_.end(), n) == leaving_.end() && has_come(n))
        there.push_back(n);
    }
    const bool comes = coming_ + job_.size() < capacity && (there.empty() || random_.below(2) == 0);
    if (comes) {
      ++changing_;
      ++coming_;
      job_.come([this](net::node_id) {
        ++came_;
        --coming_;
        --changing_;
      });
    } else if (!there.empty()) {
      const net::node_id n = there[random_.below(there.size())];
      leaving_.push_back(n);
      ++changing_;
      job_.leave(n, [this] {
        ++left_;
        --changing_;
      });
    }
    plan_change();
  }
  [[nodiscard]] bool has_come(net::node_id n) { return n < founders + came_; }

  prng random_;
  sim::world world_;
  sim::job job_;
  std::vector<long> answers_;
  std::vector<net::node_id> leaving_;
  bool quiet_ = false;
  unsigned began_ = 0, changing_ = 0, coming_ = 0, came_ = 0, left_ = 0;
};

TEST(simulated_members, come_and_go_while_the_job_computes) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    coming_and_going job(seed, {});
    job.run();
    EXPECT_GT(job.work_of_comers(), 0U);
  }
}

TEST(simulated_members, come_and_go_over_a_bad_network) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto how :
         {cluster::balancing::random, cluster::balancing::sender, cluster::balancing::informed})
      coming_and_going(seed, bad, how).run();
  }
}

struct guest : threaded {
  slot_ptr* let_go;
  void start() { *let_go = to_sptr(GO); }
  void go() { terminate(); }
  fiber<&guest::go> GO{this, 1};
};

// What they have of it nobody will end.
TEST(simulated_members, leave_after_a_computation_that_failed_before_it_ended_their_frames) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world w({.jitter_ns = 20'000}, seed);
    sim::job j(w, {.nodes = 2, .founders = 2, .cost = two_microseconds});
    constexpr std::int64_t ms = 1'000'000;
    slot_ptr dead, lives;
    bool settled = false, left = false;
    j.when_settled = [&] { settled = true; };
    j.node(0).as_worker([&] { invoke<guest>(node_id_t{1}, local_address(&dead)); });
    ASSERT_TRUE(w.run([&] { return static_cast<bool>(dead); }, 100 * ms));
    j.node(0).fail(std::make_exception_ptr(std::domain_error("no such place")));
    ASSERT_TRUE(w.run([&] { return settled; }, w.now_ns() + 100 * ms));
    // Of the next one; this waits.
    j.node(0).as_worker([&] { invoke<guest>(node_id_t{1}, local_address(&lives)); });
    ASSERT_TRUE(w.run([&] { return static_cast<bool>(lives); }, w.now_ns() + 100 * ms));
    j.leave(1, [&] { left = true; });
    EXPECT_FALSE(w.run([&] { return left; }, w.now_ns() + 20 * ms)) << "it has work";
    j.node(0).as_worker([&] { sync(lives); });
    EXPECT_TRUE(w.run([&] { return left; }, w.now_ns() + 100 * ms));
  }
}

// Nobody has heard more of it than that it will come: the next one comes.
TEST(simulated_members, who_ends_while_it_comes_is_no_loss) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world w({.jitter_ns = 20'000}, seed);
    sim::job j(w, {.nodes = 5, .founders = 3, .cost = two_microseconds});
    std::vector<long> answers;
    j.node(0).as_worker([&] { token<sum_of_fibs>(14, &answers); });
    j.when_made = [&](net::node_id n) {
      if (n == 3) j.node(n).crash();
    };
    std::vector<net::node_id> refused, came;
    for (int i = 0; i < 2; ++i) {
      j.come([&](net::node_id n) { came.push_back(n); },
             [&](net::node_id n) { refused.push_back(n); });
    }
    bool quiet = false;
    j.node(0).protocols.quiet.detect([&] { quiet = true; });
    ASSERT_TRUE(w.run([&] { return quiet && !came.empty(); }, 10'000'000'000));
    EXPECT_EQ(refused, std::vector<net::node_id>{3});
    EXPECT_EQ(came, std::vector<net::node_id>{4});
    EXPECT_EQ(answers, std::vector<long>{377});
    for (const net::node_id n : {0, 1, 2, 4}) EXPECT_TRUE(j.node(n).losses().empty()) << n;
  }
}

// Nobody mistakes the silence between a leaver and those who have nothing for it for a loss.
TEST(simulated_members, who_takes_long_to_leave_is_not_lost_nor_thinks_so_of_others) {
  sim::world world({}, 1);
  sim::job job(world, {.nodes = 6, .founders = 4, .lost_after_ns = 1'000'000});
  slot_ptr let_go;
  job.node(2).as_worker([&] { invoke<guest>(strata::node_id(), local_address(&let_go)); });
  bool left = false, waited = false, came = false;
  world.at(200'000, [&] { job.leave(2, [&] { left = true; }); });
  world.at(300'000, [&] { job.come([&](net::node_id) { came = true; }); });
  world.at(20'000'000, [&] {
    waited = true;
    EXPECT_TRUE(came);
    EXPECT_FALSE(left);
    job.node(0).as_worker([&] { sync(let_go); });
  });
  EXPECT_TRUE(world.run([&] { return left && world.now_ns() > 40'000'000; }, 100'000'000));
  EXPECT_TRUE(waited);
  expect_no_losses(job);
}

// Node 0 counts it first, and from then on its beats.
TEST(simulated_members, who_comes_beats_while_one_takes_long_to_know_it) {
  sim::world world({}, 1);
  constexpr std::int64_t lost_after_ns = 1'000'000;
  sim::job job(world, {.nodes = 4, .founders = 3, .lost_after_ns = lost_after_ns});
  deaf_node slow(job, 2);
  bool waited = false, came = false;
  job.node(0).says = [&](net::node_id, cluster::kind k) {
    if (k == cluster::kind::known && !std::exchange(waited, true))
      slow.be_deaf_for(2 * lost_after_ns);
  };
  job.come([&](net::node_id) { came = true; });
  EXPECT_TRUE(world.run([&] { return came && world.now_ns() > 5 * lost_after_ns; }, 100'000'000));
  EXPECT_TRUE(waited);
  expect_no_losses(job);
}

// Before it has answered a comer, which waits for that before it watches anybody.
TEST(simulated_members, who_falls_silent_while_another_comes_is_found) {
  constexpr std::int64_t lost_after_ns = 1'000'000;
  for (net::node_id silent = 0; silent < 3; ++silent) {
    sim::world world({}, 1);
    sim::job job(world, {.nodes = 4, .founders = 3, .lost_after_ns = lost_after_ns});
    job.node(0).says = [&](net::node_id, cluster::kind k) {
      if (k == cluster::kind::known) world.at(world.now_ns(), [&] { job.node(silent).crash(); });
    };
    job.come({});
    const auto all_know = [&] {
      for (net::node_id n = 0; n < 3; ++n) {
        if (n != silent && !job.node(n).losses().contains(silent)) return false;
      }
      return true;
    };
    EXPECT_TRUE(world.run(all_know, 10 * lost_after_ns)) << "node " << silent;
  }
}

// Those who have heard its last word beat for it no more, while another takes long to hear it.
TEST(simulated_members, who_waits_for_the_last_to_let_it_go_takes_nobody_for_lost) {
  sim::world world({}, 1);
  constexpr std::int64_t lost_after_ns = 1'000'000;
  sim::job job(world, {.nodes = 3, .founders = 3, .lost_after_ns = lost_after_ns});
  deaf_node slow(job, 2);
  bool waited = false, left = false;
  job.node(2).says = [&](net::node_id, cluster::kind k) {
    if (k == cluster::kind::kept_back && !std::exchange(waited, true))
      slow.be_deaf_for(2 * lost_after_ns);
  };
  job.leave(1, [&] { left = true; });
  EXPECT_TRUE(world.run([&] { return left; }, 100'000'000));
  EXPECT_TRUE(waited);
  expect_no_losses(job);
}

struct waiting_call {
  bool waits = false, has_ended = false;
};

void give_way_and_wait(waiting_call* mine) {
  // Who is alone goes on at once but for a few times.
  for (int i = 0; i < 300; ++i) detail::yield_stack();
  mine->waits = true;
  (void)detail::park({.what = "the test", .address = mine});
  mine->has_ended = true;
}

// However often it has given way before.
TEST(simulated_members, stay_for_a_call_that_waits_there_and_leave_after_it) {
  sim::world world({}, 1);
  sim::job_model model;
  model.nodes = model.founders = 2;
  sim::job job(world, model);
  waiting_call there;
  bool left = false, returned = false;
  job.node(0).begin_thread([&] {
    call<give_way_and_wait>(on_node{1}, local_address(&there));
    returned = true;
  });
  EXPECT_TRUE(world.run([&] { return there.waits; }, 100'000'000));
  job.leave(1, [&] { left = true; });
  EXPECT_FALSE(world.run([&] { return left; }, world.now_ns() + 20'000'000));
  EXPECT_FALSE(there.has_ended);
  job.node(1).as_worker([&] { detail::unpark(&there, 1); });
  EXPECT_TRUE(world.run([&] { return left && returned; }, world.now_ns() + 100'000'000));
  EXPECT_TRUE(there.has_ended);
}

// As in the runtime: whoever waits for what a signal or a PUT would have done waits in vain.
TEST(simulated_members, are_missed_by_who_signals_one_that_has_just_left) {
  sim::world world({}, 1);
  sim::job job(world, {.nodes = 3, .founders = 3});
  bool left = false;
  job.leave(2, [&] { left = true; });
  ASSERT_TRUE(world.run([&] { return left; }, 100'000'000));
  // As if it had looked before that one left.
  job.node(0).post(2, cluster::kind::signal, {}, {});
  ASSERT_TRUE(world.run([&] { return job.failure() != nullptr; }, world.now_ns() + 10'000'000));
  EXPECT_THROW(std::rethrow_exception(job.failure()), node_lost_error);
}

}  // namespace
}  // namespace strata::test

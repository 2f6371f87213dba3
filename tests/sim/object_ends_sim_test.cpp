// SPDX-License-Identifier: Apache-2.0
// How objects with names end on simulated nodes: never under a call, whoever makes it; and where a
// node is lost, without waiting for calls that nobody will let in.
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/domain.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"
#include "strata/synchronizers.hpp"
#include "tasks.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

// ---- by their makers ----

struct visited {
  struct record {
    unsigned visitors = 0;
    bool is_gone = false;
    unsigned number = 0;
  };
  struct answer {
    std::uint32_t number;
    std::uint8_t was_there;
  };

  explicit visited(record& r) : of(&r) {}
  ~visited() { of->is_gone = true; }
  visited(const visited&) = delete;
  visited& operator=(const visited&) = delete;

  answer visit(std::int64_t ns) {
    record& r = *of;  // also when this ends
    const bool was_there = !r.is_gone;
    ++r.visitors;
    this_thread::sleep_for(nanoseconds(ns));
    --r.visitors;
    return {r.number, static_cast<std::uint8_t>(was_there && !r.is_gone ? 1 : 0)};
  }
  record* of;
};

class objects_that_end {
 public:
  static constexpr node_id nodes = 4;

  // For the test of the test: without holding_calls whoever ends an object waits for none.
  objects_that_end(std::uint64_t seed, bool holding_calls)
      : p(seed, {.nodes = nodes}), holding_calls_(holding_calls) {
    p.cut_now_and_then(nodes);
    for (node_id n = 0; n < 2; ++n) {
      ++makers_;
      p.begin(n, [this] {
        for (int i = 0; i < 12; ++i) make_one();
        --makers_;
      });
    }
    for (unsigned i = 0; i < 3 * nodes; ++i) {
      p.begin(static_cast<node_id>(i % nodes), [this] {
        while (makers_ != 0) visit_one();
      });
    }
  }

  program_job p;
  unsigned visits = 0, under_a_call = 0, refused = 0, not_there = 0;

 private:
  void make_one() {
    visited::record& r = records_.emplace_back();
    r.number = static_cast<unsigned>(records_.size());
    try {
      if (holding_calls_) {
        const named<visited> object("visited", r);
        p.pause(2 * program_job::ms);
      } else {
        unheld_.push_back(std::make_unique<visited>(r));
        publish("visited", resource<visited>(to_global(unheld_.back().get())));
        p.pause(2 * program_job::ms);
        EXPECT_TRUE(withdraw("visited"));
        r.is_gone = true;
      }
      under_a_call += r.visitors != 0 ? 1 : 0;
    } catch (const name_in_use_error&) {
    }
    p.pause(program_job::ms);
  }

  void visit_one() {
    try {
      const auto object = resource<visited>::find("visited");
      std::uint32_t number = 0;
      try {
        for (;;) {
          const visited::answer a =
              object.call<&visited::visit>(static_cast<std::int64_t>(p.below(300'000)));
          ++visits;
          if (a.was_there == 0) ++under_a_call;
          // The same one each time, whatever has its name now.
          EXPECT_EQ(a.number, number == 0 ? a.number : number);
          number = a.number;
          if (!holding_calls_ && p.below(8) == 0) return;
        }
      } catch (const resource_ended_error& e) {
        ++refused;
        EXPECT_EQ(e.node(), object.node());
        EXPECT_THROW((void)object.call<&visited::visit>(std::int64_t{0}), resource_ended_error);
      }
    } catch (const misuse_error&) {
      ++not_there;
      p.pause(100'000);
    }
  }

  const bool holding_calls_;
  unsigned makers_ = 0;
  std::deque<visited::record> records_;
  std::vector<std::unique_ptr<visited>> unheld_;  // until nobody can call it any more
};

TEST(simulated_objects, do_not_end_under_a_call) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    objects_that_end job(seed, true);
    job.p.run();
    EXPECT_EQ(job.under_a_call, 0U);
    EXPECT_GT(job.visits, 0U);
    EXPECT_GT(job.refused, 0U);
    EXPECT_GT(job.not_there, 0U);
  }
}

TEST(simulated_objects, would_end_under_a_call_if_nobody_waited) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    objects_that_end job(seed, false);
    job.p.run();
    EXPECT_GT(job.under_a_call, 0U) << "nobody would notice";
  }
}

TEST(simulated_objects, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    objects_that_end job(7, true);
    job.p.run();
    return std::tuple(job.p.outcome(), job.visits, job.refused, job.not_there);
  };
  EXPECT_EQ(outcome(), outcome());
}

// ---- lost nodes ----

// Calls to it wait at its home until somebody lets them in: pass() whatever becomes of the job.
struct gate {
  explicit gate(bool& ended) : has_ended(&ended) {}
  ~gate() { *has_ended = true; }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  void pass() { opened.acquire(); }
  void pass_in_job() { semaphore_handle(resource(to_global(&opened))).acquire(); }
  counting_semaphore<> opened{0};
  bool* has_ended;
};

void await_what_never_is() { (void)await_name<std::uint32_t>("never"); }

struct wait_for_others {
  const char* what;
  void (*wait)();
  bool by_itself = false;  // on the object's node it is a wait for threads of that one
};
constexpr std::array waits_for_others{
    wait_for_others{"object", [] { resource<gate>::await("gate").call<&gate::pass>(); }, true},
    wait_for_others{"object, by a handle",
                    [] { resource<gate>::await("door").call<&gate::pass_in_job>(); }},
    wait_for_others{"semaphore", [] { semaphore_handle::await("units").acquire(); }},
    wait_for_others{"lock", [] { lock_handle::await("units").lock(); }},
    wait_for_others{"barrier", [] { barrier_handle::await("phase").arrive_and_wait(); }},
    wait_for_others{"barrier, for an hour",
                    [] {
                      barrier_handle phase = barrier_handle::await("phase");
                      (void)phase.wait_for(phase.arrive(), std::chrono::hours(1));
                    }},
    wait_for_others{"domain", [] { domain_handle::await("members").await_size(4); }},
    wait_for_others{"task", [] { awaited_task("task").join(); }},
    wait_for_others{"task of its node", [] { awaited_task("lasting").join(); }},
    wait_for_others{"task of its node, for an hour",
                    [] { (void)awaited_task("lasting").has_ended_within(std::chrono::hours(1)); }},
    wait_for_others{"name", &await_what_never_is}};

struct told_threads {
  std::size_t wanted = 0;
  std::vector<std::pair<node_id, std::string>> in_order;  // of the nodes that live on
  std::tuple<std::int64_t, std::uint64_t, std::uint64_t> outcome;
  friend bool operator==(const told_threads&, const told_threads&) = default;
};
// Whichever node is lost, in whatever moment, whoever waits hears of it, on every node; ending an
// object does not wait for calls that nobody will let in. by_cut: it lives, but all others are out
// of its reach, and it is out of theirs.
told_threads told_of_a_loss(std::uint64_t seed, bool by_cut) {
  constexpr node_id nodes = 4;
  const sim::job_model model{
      .nodes = nodes, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
  program_job p(seed, model, program_job::disorderly);
  const auto victim = static_cast<node_id>(p.below(nodes));
  const auto home = static_cast<node_id>(p.below(nodes));
  // When all have their names.
  const auto lost_ns =
      2 * program_job::ms + static_cast<std::int64_t>(p.below(5 * program_job::ms));
  unsigned left = 0;
  told_threads told;
  bool gate_has_ended = false, door_has_ended = false;
  p.begin(home, [&] {
    auto gates = std::make_unique<named<gate>>("gate", gate_has_ended);
    auto doors = std::make_unique<named<gate>>("door", door_has_ended);
    const named<counting_semaphore<>> units("units", 0);
    constexpr std::ptrdiff_t too_many = 1'000;
    const named<barrier<>> phase("phase", too_many);
    const named<domain> members("members");
    const named_task task("task", static_cast<node_id>((home + 1) % nodes), &await_what_never_is);
    counting_semaphore<> may_end(0);
    const named_task lasting("lasting", home, [&] { may_end.acquire(); });
    while (left != 0) this_thread::sleep_for(nanoseconds(program_job::ms));
    may_end.release();
    doors.reset();
    EXPECT_TRUE(door_has_ended) << "somebody is still inside";
    // Those whose callers are told wait on here.
    gate* const there = &**gates;
    gates.reset();
    this_thread::sleep_for(nanoseconds(program_job::ms));
    if (!gate_has_ended) {
      there->opened.release(1'000);
      this_thread::sleep_for(nanoseconds(program_job::ms));
      delete there;
    }
  });
  for (node_id n = 0; n < nodes; ++n) {
    for (const wait_for_others& w : waits_for_others) {
      if (n == home && w.by_itself) continue;
      ++left;
      if (n != victim) ++told.wanted;
      p.begin(n, [&, n] {
        try {
          w.wait();
          ADD_FAILURE() << "node " << n << " has got a " << w.what << " that nobody gives";
        } catch (const node_lost_error& e) {
          if (n != victim) told.in_order.emplace_back(n, w.what);
          EXPECT_TRUE(n == victim || e.node() == victim) << e.what();
          EXPECT_GE(p.now_ns(), lost_ns);
          EXPECT_LE(p.now_ns(), lost_ns + 2 * model.lost_after_ns);
        } catch (const remote_error& e) {  // of a task that has been told before
          if (n != victim) told.in_order.emplace_back(n, w.what);
          EXPECT_EQ(e.type_name(), "strata::node_lost_error") << e.what();
        }
        --left;
      });
    }
  }
  p.world.at(lost_ns, [&] {
    if (!by_cut) return p.job->node(victim).crash();
    for (node_id n = 0; n < nodes; ++n) p.world.cut(victim, n);
  });
  p.run();
  // What still waits at home for those who were told.
  p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);
  told.outcome = p.outcome();
  return told;
}

TEST(simulated_objects, let_nobody_wait_once_a_node_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_cut : {false, true}) {
      const told_threads told = told_of_a_loss(seed, by_cut);
      EXPECT_EQ(told.in_order.size(), told.wanted);
    }
  }
}

TEST(simulated_objects, tell_of_a_loss_in_the_order_of_their_seed) {
  for (const bool by_cut : {false, true})
    EXPECT_TRUE(told_of_a_loss(7, by_cut) == told_of_a_loss(7, by_cut)) << by_cut;
}

struct known_gate : gate {
  known_gate(bool& ended, known_gate*& here) : gate(ended) { here = this; }
};

// Its name is known, and somebody calls it, before its maker has heard so; and it never does.
TEST(simulated_objects, whose_making_fails_do_not_end_under_a_call) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id maker = 0, home = 1, caller = 2;
    const sim::job_model model{
        .nodes = 3, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    std::string name = "gate";
    while (p.job->node(maker).messenger.home_of(std::hash<std::string>()(name)) != home)
      name += '+';
    p.job->node(home).hears = [&](node_id from, cluster::kind k, std::span<const std::byte>) {
      if (from == maker && k == cluster::kind::invoke) p.world.cut(maker, home);
      return false;
    };
    bool has_ended = false;
    known_gate* there = nullptr;
    p.begin(maker, [&] {
      EXPECT_THROW(named<known_gate>(name, has_ended, there), node_lost_error);
      ASSERT_FALSE(has_ended) << "somebody is still inside";
      there->opened.release();
      this_thread::sleep_for(nanoseconds(program_job::ms));
      delete there;
    });
    p.begin(caller, [&] {
      EXPECT_THROW(resource<known_gate>::await(name).call<&known_gate::pass>(), node_lost_error);
    });
    p.run();
    EXPECT_TRUE(has_ended);
  }
}

}  // namespace
}  // namespace strata::test

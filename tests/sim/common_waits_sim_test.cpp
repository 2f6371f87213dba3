// SPDX-License-Identifier: Apache-2.0
// Threads that wait on the node of an object with a name, by its handle, while the job of simulated
// nodes loses another one: what they hear then and later, and what becomes of the object.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "expected_error.hpp"
#include "program_job.hpp"
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

// One node has objects, another one is lost, in one of two ways, when it is time.
class home_and_victim {
 public:
  static constexpr node_id nodes = 4;
  static constexpr std::int64_t lost_after_ns = 30 * program_job::ms;
  static constexpr std::int64_t told_within_ns = 2 * lost_after_ns;

  home_and_victim(std::uint64_t seed, bool by_cut)
      : p(seed, model(), program_job::disorderly),
        home(static_cast<node_id>(p.below(nodes))),
        victim(static_cast<node_id>((home + 1 + p.below(nodes - 1)) % nodes)),
        by_cut_(by_cut) {}

  void lose_victim() {
    p.world.at(p.now_ns(), [this] {
      if (!by_cut_) return p.job->node(victim).crash();
      for (node_id n = 0; n < nodes; ++n) p.world.cut(victim, n);
    });
  }
  // By a thread of another node than the victim.
  void expect_to_be_told(const char* what, const std::function<void()>& f,
                         std::int64_t within_ns = told_within_ns) const {
    expect_error<node_lost_error>(p, what, within_ns, f,
                                  [this](const node_lost_error& e) { return e.node() == victim; });
  }
  void run() {
    p.run();
    // What is still on its way to those who were told.
    p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);
  }

  program_job p;
  const node_id home, victim;

 private:
  static sim::job_model model() {
    return {.nodes = nodes, .lost_after_ns = lost_after_ns, .breaks_off = true};
  }
  const bool by_cut_;
};

template <class F>
void with_each_loss(F&& f) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_cut : {false, true}) {
      SCOPED_TRACE(by_cut ? "cut" : "crash");
      home_and_victim job(seed, by_cut);
      f(job);
    }
  }
}

// ---- the lock of who is lost ----

// Held by a thread of the victim, and wanted by threads of all nodes.
TEST(simulated_common_waits, for_a_lock_whose_holder_is_lost_end) {
  with_each_loss([](home_and_victim& job) {
    program_job& p = job.p;
    constexpr unsigned on_each = 3;
    bool is_held = false, may_end = false;
    unsigned about_to_wait = 0, told = 0;
    p.begin(job.home, [&] {
      const named<counting_semaphore<>> lock("lock", 1);
      while (told != on_each * (home_and_victim::nodes - 1)) p.pause(program_job::ms);
      lock_handle mine = lock_handle::await("lock");
      EXPECT_FALSE(mine.try_lock()) << "it is held for ever";
      job.expect_to_be_told(
          "afterwards", [&] { mine.lock(); }, 0);
      may_end = true;
    });
    p.begin(job.victim, [&] {
      lock_handle::await("lock").lock();
      is_held = true;
      while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    for (unsigned i = 0; i < on_each * home_and_victim::nodes; ++i) {
      const auto n = static_cast<node_id>(i % home_and_victim::nodes);
      if (n == job.victim) continue;
      p.begin(n, [&] {
        while (!is_held) p.pause(100'000);
        lock_handle mine = lock_handle::await("lock");
        // Some wait by then, others have not begun to, or wait when the loss is known.
        if (++about_to_wait == on_each * (home_and_victim::nodes - 1)) job.lose_victim();
        this_thread::sleep_for(nanoseconds(p.below(2 * home_and_victim::lost_after_ns)));
        job.expect_to_be_told("lock", [&] { mine.lock(); });
        ++told;
      });
    }
    job.run();
  });
}

// Held in a scope, by threads of nodes that live on, whose destructor gives it back.
TEST(simulated_common_waits, for_a_lock_that_is_held_across_a_loss_leave_its_scope) {
  with_each_loss([](home_and_victim& job) {
    program_job& p = job.p;
    constexpr node_id others = home_and_victim::nodes - 1;
    const auto name_of = [](node_id n) { return "lock" + std::to_string(n); };
    unsigned held = 0, left = 0;
    bool may_end = false;
    p.begin(job.victim, [&] {
      while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    p.begin(job.home, [&] {
      const named<counting_semaphore<>> never("never", 0);
      std::vector<std::unique_ptr<named<counting_semaphore<>>>> locks;
      for (node_id n = 0; n < home_and_victim::nodes; ++n)
        locks.push_back(std::make_unique<named<counting_semaphore<>>>(name_of(n), 1));
      while (held != others) p.pause(100'000);
      job.lose_victim();
      while (left != others) p.pause(program_job::ms);
      EXPECT_TRUE((*locks[job.home])->try_acquire()) << "of its own node it is given back";
      may_end = true;
    });
    for (node_id n = 0; n < home_and_victim::nodes; ++n) {
      if (n == job.victim) continue;
      p.begin(n, [&, n] {
        semaphore_handle never = semaphore_handle::await("never");
        lock_handle mine = lock_handle::await(name_of(n));
        {
          const std::lock_guard guard(mine);
          ++held;
          // Until the loss is known here.
          job.expect_to_be_told("semaphore", [&] { never.acquire(); });
        }
        if (n != job.home)
          job.expect_to_be_told(
              "afterwards", [&] { mine.lock(); }, 0);
        ++left;
      });
    }
    job.run();
  });
}

// ---- what begins afterwards ----

// On the objects' node: what need not wait is done.
TEST(simulated_common_waits, that_begin_after_a_loss_end_at_once) {
  with_each_loss([](home_and_victim& job) {
    program_job& p = job.p;
    constexpr node_id others = home_and_victim::nodes - 1;
    unsigned found = 0, told = 0;
    bool may_end = false;
    p.begin(job.victim, [&] {
      while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    p.begin(job.home, [&] {
      const named<counting_semaphore<>> units("units", 1), never("never", 0);
      named<barrier<>> phase("phase", 2);
      const named<domain> members("members");
      counting_semaphore<> task_may_end(0);
      const named_task ended("ended", job.home, [] {});
      const named_task lasting("lasting", job.home, [&] { task_may_end.acquire(); });
      while (found != others) p.pause(100'000);
      job.lose_victim();
      while (told != others) p.pause(program_job::ms);
      // Nobody has arrived.
      const auto first = phase->arrive(), second = phase->arrive();
      EXPECT_EQ(first, second) << "somebody had arrived before";
      task_may_end.release();
      may_end = true;
    });
    for (node_id n = 0; n < home_and_victim::nodes; ++n) {
      if (n == job.victim) continue;
      p.begin(n, [&, n] {
        semaphore_handle units = semaphore_handle::await("units");
        semaphore_handle never = semaphore_handle::await("never");
        barrier_handle phase = barrier_handle::await("phase");
        domain_handle members = domain_handle::await("members");
        awaited_task ended("ended"), lasting("lasting");
        ended.join();
        ++found;
        // Until the loss is known here.
        job.expect_to_be_told("semaphore", [&] { never.acquire(); });
        const auto expect_refusal = [&](const char* what, const std::function<void()>& f) {
          job.expect_to_be_told(what, f, 0);
        };
        if (n == job.home) {
          units.acquire();
          expect_refusal("a unit", [&] { units.acquire(); });
          EXPECT_FALSE(units.try_acquire());
          units.release();
          EXPECT_TRUE(units.try_acquire());
          ended.join();
          EXPECT_FALSE(lasting.has_ended());
          const endpoint mine;
          EXPECT_EQ(members.join(mine.id()), 0U);
          members.await_size(1);
          expect_refusal("domain", [&] { members.await_size(2); });
          EXPECT_TRUE(members.leave(mine.id()));
        } else {
          expect_refusal("a unit", [&] { units.acquire(); });
          expect_refusal("a unit, tried", [&] { (void)units.try_acquire(); });
          expect_refusal("a task that has ended", [&] { ended.join(); });
          expect_refusal("domain", [&] { members.await_size(0); });
        }
        expect_refusal("barrier", [&] { phase.arrive_and_wait(); });
        expect_refusal("task", [&] { lasting.join(); });
        ++told;
      });
    }
    job.run();
  });
}

// ---- what becomes of the objects ----

// Of a semaphore: none is lost, and those who use the object itself wait on, and get what comes.
TEST(simulated_common_waits, that_have_ended_take_no_units_with_them) {
  with_each_loss([](home_and_victim& job) {
    program_job& p = job.p;
    constexpr unsigned by_handle = 12, by_itself = 6;
    unsigned about_to_wait = 0, have_got = 0, told = 0;
    unsigned left_by_handle = by_handle, left_by_itself = by_itself;
    bool may_end = false;
    p.begin(job.victim, [&] {
      while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    p.begin(job.home, [&] {
      named<counting_semaphore<>> units("units", 0);
      for (unsigned i = 0; i < by_handle + by_itself; ++i) {
        p.begin(job.home, [&, uses_itself = i % 3 == 0] {
          semaphore_handle handle = semaphore_handle::await("units");
          p.pause(program_job::ms);
          if (++about_to_wait == by_handle) job.lose_victim();
          if (uses_itself) {
            units->acquire();
            ++have_got;
            --left_by_itself;
            return;
          }
          try {
            handle.acquire();
            ++have_got;
          } catch (const node_lost_error& e) {
            EXPECT_EQ(e.node(), job.victim);
            ++told;
          }
          --left_by_handle;
        });
      }
      // Now and then, while the loss becomes known.
      auto released = static_cast<unsigned>(1 + p.below(by_itself - 1));
      for (unsigned i = 0; i < released; ++i) {
        p.pause(home_and_victim::lost_after_ns);
        units->release();
      }
      while (left_by_handle != 0) p.pause(program_job::ms);
      p.pause(program_job::ms);
      EXPECT_GT(left_by_itself, 0U) << "nobody would notice";
      EXPECT_FALSE(units->try_acquire()) << "somebody waits, and there is a unit";
      while (left_by_itself != 0) {
        units->release();
        ++released;
        p.pause(program_job::ms);
      }
      EXPECT_EQ(released, have_got) << "all of them, and one at a time";
      may_end = true;
    });
    job.run();
    EXPECT_EQ(have_got + told, by_handle + by_itself);
    EXPECT_GT(told, 0U);
  });
}

struct room_with_a_door {
  explicit room_with_a_door(bool& ended) : has_ended(&ended) {}
  ~room_with_a_door() { *has_ended = true; }
  room_with_a_door(const room_with_a_door&) = delete;
  room_with_a_door& operator=(const room_with_a_door&) = delete;
  void enter() { semaphore_handle(resource(to_global(&opened))).acquire(); }
  counting_semaphore<> opened{0};
  bool* has_ended;
};

// An object whose end waits for calls in progress when the loss comes, and one whose end begins
// when all have heard of it.
TEST(simulated_common_waits, that_have_ended_hold_no_object) {
  with_each_loss([](home_and_victim& job) {
    program_job& p = job.p;
    constexpr unsigned users = 3 * home_and_victim::nodes;
    std::array<bool, 2> has_ended{};
    unsigned inside = 0, left = 0;
    bool may_end = false;
    p.begin(job.victim, [&] {
      while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
    });
    for (unsigned i = 0; i < users; ++i) {
      const auto n = static_cast<node_id>(i % home_and_victim::nodes);
      if (n == job.victim) continue;
      ++left;
      p.begin(n, [&, i] {
        const auto room = resource<room_with_a_door>::await(i % 2 == 0 ? "one" : "other");
        ++inside;
        job.expect_to_be_told(
            "object", [&] { room.call<&room_with_a_door::enter>(); },
            4 * home_and_victim::told_within_ns);
        --left;
      });
    }
    p.begin(job.home, [&, users_in_all = left] {
      auto one = std::make_unique<named<room_with_a_door>>("one", has_ended[0]);
      auto other = std::make_unique<named<room_with_a_door>>("other", has_ended[1]);
      room_with_a_door* const there = &**one;
      while (inside != users_in_all) p.pause(100'000);
      this_thread::sleep_for(nanoseconds(program_job::ms));  // all calls are there
      const std::int64_t lost_ns = p.now_ns();
      job.lose_victim();
      one.reset();
      EXPECT_LE(p.now_ns(), lost_ns + home_and_victim::told_within_ns);
      while (left != 0) p.pause(program_job::ms);
      p.pause(program_job::ms);
      if (!has_ended[0]) delete there;  // it was left to who was just about to go
      other.reset();
      EXPECT_TRUE(has_ended[1]) << "somebody is still inside";
      may_end = true;
    });
    job.run();
  });
}

}  // namespace
}  // namespace strata::test

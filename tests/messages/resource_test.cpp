// SPDX-License-Identifier: Apache-2.0
// Named objects within one process: calls, their end, and both at once.
#include "strata/resource.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "messages/followed.hpp"
#include "messages/named_objects.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "strata/shared_stop.hpp"
#include "strata/shared_task.hpp"
#include "strata/thread.hpp"

namespace strata {
namespace {

using test::with_workers;

TEST(named_objects, are_held_until_they_end) {
  messages::named_objects all;
  int one = 0, other = 0;
  all.enter(16, &one, nullptr);
  all.enter(32, &other, nullptr);  // beside the first
  EXPECT_EQ(all.hold(16), &one);
  EXPECT_EQ(all.hold(16), &one);
  EXPECT_EQ(all.hold(32), &other);
  EXPECT_EQ(all.hold(48), nullptr);
  all.let_go(16);
  all.let_go(16);
  EXPECT_TRUE(all.end(16));
  EXPECT_EQ(all.hold(16), nullptr);
  all.let_go(32);
  EXPECT_TRUE(all.end(32));
}

// It has begun to end once nobody gets it any more.
void await_ending(messages::named_objects& all) {
  while (all.hold(1) != nullptr) {
    all.let_go(1);
    this_thread::yield();
  }
}

// A message may name any number.
TEST(named_objects, are_held_as_what_they_are) {
  messages::named_objects all;
  static constexpr char kinds[2] = {};
  int stop = 0;
  all.enter(8, &stop, &kinds[0]);
  EXPECT_EQ(all.hold(8, &kinds[1]), nullptr);
  EXPECT_EQ(all.hold(8, &kinds[0]), &stop);
  all.let_go(8);
  EXPECT_TRUE(all.end(8));
  EXPECT_EQ(all.hold(8, &kinds[0]), nullptr);
}

// Its node has told of its end while somebody asked, and somebody else asks again before the first
// one hears so.
TEST(followed_objects, are_forgotten_by_who_made_them) {
  messages::followed_objects<std::atomic<int>> all;
  const auto second = [](const auto&) {};
  const auto first = [&](const auto&) {
    all.forget(1);
    (void)all.follow(1, 0, second);
    throw std::range_error("it has ended");
  };
  EXPECT_THROW((void)all.follow(1, 0, first), std::range_error);
  EXPECT_NE(all.find(1), nullptr);
  EXPECT_THROW((void)all.follow(2, 0, [](const auto&) { throw std::range_error("no"); }),
               std::range_error);
  EXPECT_EQ(all.find(2), nullptr);
}

TEST(named_objects, end_when_nobody_holds_them) {
  runtime rt(with_workers(2));
  rt.run([] {
    messages::named_objects all;
    int object = 0;
    all.enter(1, &object, nullptr);
    ASSERT_EQ(all.hold(1), &object);
    std::atomic<bool> is_held{true};
    thread ends([&] {
      EXPECT_TRUE(all.end(1));
      EXPECT_FALSE(is_held);
    });
    await_ending(all);
    is_held = false;
    all.let_go(1);
    ends.join();
  });
}

TEST(named_objects, do_not_end_while_they_are_held_after_a_loss) {
  runtime rt(with_workers(2));
  rt.run([] {
    messages::named_objects all;
    int object = 0;
    all.enter(1, &object, nullptr);
    ASSERT_EQ(all.hold(1), &object);
    thread ends([&] { EXPECT_FALSE(all.end(1)); });
    await_ending(all);
    all.on_lost();
    ends.join();
    all.let_go(1);
    all.enter(2, &object, nullptr);
    EXPECT_TRUE(all.end(2));
  });
}

struct counter {
  std::atomic<long> value{0};
  long add(long more) { return value += more; }
  void reset() { value = 0; }
};

class resources : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run(f);
  }
};
INSTANTIATE_TEST_SUITE_P(workers, resources, testing::Values(1U, 2U, 4U, 8U));

TEST_P(resources, are_called_by_name) {
  run([] {
    named<counter> hits("hits");
    const auto found = resource<counter>::find("hits");
    EXPECT_EQ(found.call<&counter::add>(3L), 3);
    found.call<&counter::reset>();
    EXPECT_EQ(hits->value.load(), 0);
    EXPECT_THROW((void)resource<int>::find("hits"), misuse_error);
    EXPECT_THROW((void)resource<counter>::find("misses"), misuse_error);
    EXPECT_THROW(named<counter>("hits"), name_in_use_error);
    EXPECT_EQ(found.call<&counter::add>(2L), 2);
    EXPECT_THROW(resource<counter>().call<&counter::reset>(), misuse_error);
  });
}

struct publisher : threaded {
  bool* was_refused;
  slot_ptr done;
  void start() {
    EXPECT_THROW(publish("a name", 1), misuse_error);
    EXPECT_THROW((void)withdraw("a name"), misuse_error);
    EXPECT_THROW((void)find_name<int>("a name"), misuse_error);
    EXPECT_THROW((void)await_name<int>("a name"), misuse_error);
    EXPECT_EQ(find_name<int>("known"), 2) << "nobody has to be asked";
    *was_refused = true;
    sync(done);
    terminate();
  }
};

// Where the name is at home here as well, so that nobody would have to be waited for.
TEST_P(resources, have_no_names_from_fibers) {
  run([] {
    publish("known", 2);
    EXPECT_EQ(find_name<int>("known"), 2);
    bool was_refused = false;
    completion done(1);
    token<publisher>(&was_refused, done.sptr());
    done.wait();
    EXPECT_TRUE(was_refused);
    EXPECT_FALSE(find_name<int>("a name"));
    EXPECT_TRUE(withdraw("known"));
  });
}

TEST_P(resources, say_that_they_have_ended) {
  run([] {
    std::optional<resource<counter>> kept;
    for (int i = 0; i < 3; ++i) {
      named<counter> hits("hits");
      if (kept) {
        EXPECT_THROW((void)kept->call<&counter::add>(1L), resource_ended_error);
      }
      kept = resource<counter>::find("hits");  // another one, whatever its address
      EXPECT_EQ(kept->call<&counter::add>(1L), 1);
    }
    try {
      kept->call<&counter::reset>();
      ADD_FAILURE() << "nothing is there";
    } catch (const resource_ended_error& e) {
      EXPECT_EQ(e.node(), 0);
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
    EXPECT_FALSE(find_name<resource<counter>>("hits").has_value());
  });
}

// What is known of an object when it ends.
struct watched {
  struct record {
    std::atomic<long> begun{0}, ended{0};
    std::atomic<bool> is_gone{false};
  };
  explicit watched(record& r) : of(&r) {}
  ~watched() {
    EXPECT_EQ(of->begun.load(), of->ended.load());
    of->is_gone = true;
  }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;
  long visit(bool waits) {
    ++of->begun;
    EXPECT_FALSE(of->is_gone);
    if (waits) this_thread::yield();
    EXPECT_FALSE(of->is_gone);
    return ++of->ended;
  }
  record* of;
};

// Every call either is made while the object is there, or says that it has ended.
TEST_P(resources, end_while_many_threads_call_them) {
  run([] {
    for (int round = 0; round < 50; ++round) {
      watched::record r;
      auto object = std::make_unique<named<watched>>("watched", r);
      const auto ref = object->ref();
      std::atomic<long> made{0};
      std::atomic<int> told{0};
      std::vector<thread> callers;
      constexpr int callers_in_all = 32;
      for (int c = 0; c < callers_in_all; ++c) {
        callers.emplace_back([&, c] {
          try {
            for (int i = 0;; ++i) {
              (void)ref.call<&watched::visit>((c + i) % 4 == 0);
              ++made;
              if (i % 8 == c % 8) this_thread::yield();
            }
          } catch (const resource_ended_error&) {
            ++told;
          }
        });
      }
      while (made < 10 * callers_in_all) this_thread::yield();
      object.reset();
      EXPECT_TRUE(r.is_gone);
      for (thread& t : callers) t.join();
      EXPECT_EQ(told.load(), callers_in_all);
      EXPECT_EQ(made.load(), r.begun.load());
      EXPECT_EQ(made.load(), r.ended.load());
    }
  });
}

struct gate {
  explicit gate(std::atomic<bool>& passed) : passed_(passed) {}
  ~gate() { EXPECT_TRUE(passed_); }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  void pass() {
    entered.release();
    may_pass.acquire();
    passed_ = true;
  }
  counting_semaphore<> entered{0}, may_pass{0};

 private:
  std::atomic<bool>& passed_;
};

TEST_P(resources, wait_for_the_calls_in_progress) {
  run([] {
    std::atomic<bool> passed{false};
    auto object = std::make_unique<named<gate>>("gate", passed);
    const auto ref = object->ref();
    gate& itself = **object;
    thread caller([&] { ref.call<&gate::pass>(); });
    itself.entered.acquire();
    thread ends([&] { object.reset(); });
    // Until its end has begun.
    try {
      while (true) {
        ref.call<[](gate&) {}>();
        this_thread::yield();
      }
    } catch (const resource_ended_error&) {
    }
    EXPECT_FALSE(passed);
    itself.may_pass.release();
    caller.join();
    ends.join();
    EXPECT_TRUE(passed);
  });
}

// Its name is another's by then.
TEST_P(resources, leave_a_name_to_who_has_it_now) {
  run([] {
    std::optional<named<counter>> first(std::in_place, "name");
    EXPECT_TRUE(withdraw("name"));
    named<counter> second("name");
    first.reset();
    EXPECT_EQ(resource<counter>::find("name").call<&counter::add>(7L), 7);
    EXPECT_EQ(second->value.load(), 7);
  });
}

TEST(resource, may_end_outside_its_runtime) {
  std::unique_ptr<named<counter>> late, never;
  {
    runtime rt(with_workers(2));
    const auto ref = rt.run([&] {
      late = std::make_unique<named<counter>>("late");
      never = std::make_unique<named<counter>>("never");
      return late->ref();
    });
    late.reset();
    rt.run([&] {
      EXPECT_THROW((void)ref.call<&counter::add>(1L), resource_ended_error);
      // Nobody was there to withdraw the name.
      const auto found = resource<counter>::find("late");
      EXPECT_THROW((void)found.call<&counter::add>(1L), resource_ended_error);
      EXPECT_TRUE(withdraw("late"));
    });
  }
  never.reset();
  EXPECT_THROW(named<counter>("outside"), misuse_error);
}

// ---- tasks ----

std::atomic<int> made_here{0};
void take_part(int more) { made_here += more; }
void fail() { throw std::range_error("no such city"); }
counting_semaphore<>* held_up = nullptr;
void wait_for_unit() { held_up->acquire(); }

TEST(resource, is_a_stop_that_threads_from_outside_request) {
  runtime rt(with_workers(1));
  rt.run([] {
    shared_stop stop;
    blocking([&] { std::thread([&] { EXPECT_TRUE(stop.request()); }).join(); });
    EXPECT_TRUE(stop.token().stop_requested());
    EXPECT_FALSE(stop.request());
  });
}

TEST_P(resources, are_tasks_that_many_join) {
  run([] {
    made_here = 0;
    counting_semaphore<> unit(0);
    held_up = &unit;
    {
      named<shared_task> waits("waits", on_node{0}, call<wait_for_unit>());
      named<shared_task> adds("adds", on_node{0}, call<take_part>(5));
      named<shared_task> fails("fails", on_node{0}, [] { fail(); });
      std::vector<thread> joiners;
      std::atomic<int> joined{0};
      for (int i = 0; i < 8; ++i) {
        joiners.emplace_back([&] {
          task_handle::await("adds").join();
          EXPECT_EQ(made_here.load(), 5);
          EXPECT_THROW(task_handle::await("fails").join(), std::range_error);
          task_handle late = task_handle::find("waits");
          late.join();
          EXPECT_TRUE(late.has_ended());
          ++joined;
        });
      }
      EXPECT_FALSE(waits->has_ended());
      const auto time = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      EXPECT_FALSE(waits->wait_until(time));
      EXPECT_GE(std::chrono::steady_clock::now(), time);
      EXPECT_FALSE(task_handle::find("waits").wait_for(std::chrono::milliseconds(1)));
      EXPECT_TRUE(fails->wait_for(std::chrono::hours(1)));
      EXPECT_TRUE(fails->has_ended());
      EXPECT_TRUE(task_handle::find("fails").wait_until(std::chrono::system_clock::now()));
      adds->join();
      adds->join();
      unit.release();
      for (thread& t : joiners) t.join();
      EXPECT_EQ(joined.load(), 8);
      EXPECT_EQ(made_here.load(), 5);
    }
    EXPECT_THROW((void)task_handle::find("adds"), misuse_error);
    EXPECT_THROW(shared_task(on_node{1}, call<fail>()), misuse_error);
  });
  EXPECT_THROW(shared_task(on_node{0}, call<fail>()), misuse_error);
}

// What others still wait for is awaited.
TEST_P(resources, are_tasks_whose_end_is_awaited_by_their_makers) {
  run([] {
    made_here = 0;
    counting_semaphore<> unit(0), found(0);
    held_up = &unit;
    thread joiner;
    {
      named<shared_task> t("task", on_node{0}, [] {
        wait_for_unit();
        take_part(1);
      });
      joiner = thread([&] {
        task_handle mine = task_handle::await("task");
        found.release();
        try {
          mine.join();
          EXPECT_EQ(made_here.load(), 1);
        } catch (const resource_ended_error&) {  // its end has begun before
        }
      });
      found.acquire();
      unit.release();
    }
    EXPECT_EQ(made_here.load(), 1);
    joiner.join();
  });
}

}  // namespace
}  // namespace strata

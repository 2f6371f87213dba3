// SPDX-License-Identifier: Apache-2.0
#include "program_exceptions.hpp"

#include <chrono>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <vector>

#include "program_support.hpp"
#include "strata/blocking.hpp"
#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::fib_by_tokens;
using test::require;
using test::slow_here;

int throws_elsewhere(int) {
  slow_here(0);
  if (node_id() != 0) throw std::range_error("too far from home");
  return 1;
}

// Of nodes 1 and 2 that which this is not.
int throws_beyond(int) {
  slow_here(0);
  if (node_id() == 0) return 1;
  return call<throws_elsewhere>(on_node{static_cast<node_id_t>(3 - node_id())}, 1);
}

// Round and round, until it has been on so many nodes more.
int throws_after(unsigned nodes) {
  if (nodes == 0) throw std::length_error("far enough");
  const auto next = static_cast<node_id_t>((node_id() + 1U) % num_nodes());
  return call<throws_after>(on_node{next}, nodes - 1);
}

struct thrower : threaded {
  void start() { throw std::domain_error("no such place"); }
};

long fib_by_tokens_of(int n) { return fib_by_tokens(n); }

// Here a task waits when the computation fails; 1: it has heard.
int hears_of_failure(int) {
  try {
    completion never;
    invoke<thrower>(0);
    never.wait();
  } catch (const remote_error& e) {
    return e.type_name() == "std::domain_error" ? 1 : 0;
  }
  return 0;
}

// On node 1: what a thread there waits in, until the program lets it go.
struct waits_here {
  std::binary_semaphore in_call{0};
  counting_semaphore<> until_a_time{0};
};
waits_here waits;

void wait_in_call() {
  blocking([] { waits.in_call.acquire(); });
}
void let_go_of_call() { waits.in_call.release(); }

void wait_until_a_time() {
  require(waits.until_a_time.try_acquire_for(std::chrono::hours(1)), "let go before its time");
}
void let_go_before_its_time() { waits.until_a_time.release(); }

// A thread on node 1 that takes no part waits meanwhile.
template <auto Wait, auto LetGo>
void hear_of_failure_while(runtime& rt) {
  bool caught = false;
  try {
    rt.run([&] {
      remote_thread bystander(on_node{1}, call<Wait>());
      try {
        completion never;
        invoke<thrower>(0);
        never.wait();
      } catch (const std::domain_error&) {
        caught = true;
      }
      call<LetGo>(on_node{1});
      bystander.join();
    });
    caught = false;
  } catch (const std::domain_error&) {
  }
  require(caught, "the exception came while a thread waited");
}

}  // namespace

void exceptions(runtime& rt) {
  bool caught = false;
  for (int i = 0; i < 10'000 && !caught; ++i) {
    try {
      rt.run([] { fork2join([] { return slow_here(0); }, call<throws_elsewhere>(1)); });
    } catch (const remote_error& e) {
      caught = true;
      require(e.node() != 0, "thrown elsewhere");
      require(e.type_name() == "std::range_error", e.type_name());
      require(e.message() == "too far from home", e.message());
      require(e.trace() == std::vector{e.node()} && e.hops() == 1, "straight from there");
      require(e.what() ==
                  "std::range_error on node " + std::to_string(e.node()) + ": too far from home",
              e.what());
    }
  }
  require(caught, "an exception came back");
  caught = false;
  try {
    rt.run([] {
      std::vector<remote_thread> all;
      for (const node_id_t n : {1, 0, 1})
        all.emplace_back(n, [] { throw std::range_error("disk is full"); });
      for (remote_thread& t : all) t.join();
    });
  } catch (const remote_error& e) {
    caught = e.message() == "disk is full";
  }
  require(caught, "the error of one thread of several came back");
}

// From a node to another, and from there to this one. Three nodes.
void exceptions_by_way(runtime& rt) {
  bool caught = false;
  for (int i = 0; i < 10'000 && !caught; ++i) {
    try {
      rt.run([] { fork2join([] { return slow_here(0); }, call<throws_beyond>(1)); });
    } catch (const remote_error& e) {
      caught = true;
      const auto between = static_cast<node_id_t>(3 - e.node());
      require(e.node() == 1 || e.node() == 2, "thrown beyond");
      require(e.type_name() == "std::range_error", e.type_name());
      require(e.message() == "too far from home", e.message());
      require(e.trace() == std::vector{e.node(), between} && e.hops() == 2, "by the other node");
      require(e.what() == "std::range_error on node " + std::to_string(e.node()) +
                              ": too far from home (by way of node " + std::to_string(between) +
                              ")",
              e.what());
    }
  }
  require(caught, "an exception came back by another node");

  // A thread that is awaited, and more nodes than are told.
  static constexpr unsigned nodes_on_its_way = 20;
  caught = false;
  try {
    rt.run([] { remote_thread(on_node{1}, call<throws_after>(nodes_on_its_way)).join(); });
  } catch (const remote_error& e) {
    caught = true;
    require(e.type_name() == "std::length_error" && e.message() == "far enough", e.what());
    require(e.hops() == nodes_on_its_way + 1, "how many nodes it left");
    require(e.trace().size() == remote_error::trace_max, "how many of them are told");
    for (unsigned i = 0; i < e.trace().size(); ++i)
      require(e.trace()[i] == (nodes_on_its_way + 1 - i) % 3, "in the order of its way");
  }
  require(caught, "an exception came back from far");
}

// A fiber that throws on another node fails the computation; the next one works.
void fiber_exceptions(runtime& rt) {
  for (int round = 0; round < 5; ++round) {
    bool caught = false;
    node_id_t last = 0;
    try {
      rt.run([&] {
        completion never;
        last = static_cast<node_id_t>(num_nodes() - 1);
        invoke<thrower>(last);
        fib_by_tokens(15);
        never.wait();
      });
    } catch (const remote_error& e) {
      caught = true;
      require(e.type_name() == "std::domain_error", e.type_name());
      require(e.message() == "no such place", e.message());
      require(e.trace() == std::vector{last} && e.hops() == 1, e.what());
    }
    require(caught, "the exception came");
    require(rt.run([] { return fib_by_tokens(18); }) == 2584, "and the next computation works");
  }
}

// A task of another node waits for what fails; and once the run() has ended, that node works too.
void fiber_exceptions_heard_elsewhere(runtime& rt) {
  for (int round = 0; round < 3; ++round) {
    bool caught = false;
    int heard = 0;
    try {
      rt.run([&] { heard = call<hears_of_failure>(on_node{1}, 0); });
    } catch (const std::domain_error&) {
      caught = true;
    }
    require(caught, "the exception came to run()");
    require(heard == 1, "and to who waited on node 1");
    require(rt.run([] { return call<fib_by_tokens_of>(on_node{1}, 15); }) == 610,
            "the next computation works there");
  }
}

void fiber_exceptions_beside_waits(runtime& rt) {
  hear_of_failure_while<wait_in_call, let_go_of_call>(rt);
  hear_of_failure_while<wait_until_a_time, let_go_before_its_time>(rt);
  require(rt.run([] { return fib_by_tokens(15); }) == 610, "and the next computation works");
}

// SPDX-License-Identifier: Apache-2.0
#include "program_names.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/directory.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/shared_task.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::require;

// ---- a thousand at once ----

constexpr int names_wanted = 1000;
std::atomic<int> begun_to_wait{0};

std::string awaited_name(int i) { return "awaited " + std::to_string(i); }
std::string found_name(int i) { return "found " + std::to_string(i); }

// A thread for each, on every node.
template <class LookUp>
void look_up_all(const LookUp& look_up) {
  std::atomic<int> right{0};
  std::vector<thread> threads;
  for (int i = 0; i < names_wanted; ++i) {
    threads.emplace_back([&look_up, &right, i] {
      ++begun_to_wait;
      if (look_up(i) == i) ++right;
    });
  }
  for (thread& t : threads) t.join();
  require(right == names_wanted, "all are answered");
}
void await_all() {
  look_up_all([](int i) { return await_name<int>(awaited_name(i)); });
}
void find_all_at_once() {
  look_up_all([](int i) { return find_name<int>(found_name(i)).value_or(-1); });
}
int waiting_here() { return begun_to_wait; }
void publish_share() {
  const int nodes = static_cast<int>(num_nodes());
  for (int i = node_id(); i < names_wanted; i += nodes) {
    publish(found_name(i), i);
    publish(awaited_name(i), i);
  }
}

// ---- what a call finds of an object that ends ----

struct visited {
  struct record {
    std::atomic<long> visits{0};
    std::array<std::atomic<bool>, 8> by_node{};
    std::atomic<bool> is_gone{false};
  };
  explicit visited(record& r) : of(&r) {}
  ~visited() { of->is_gone = true; }
  visited(const visited&) = delete;
  visited& operator=(const visited&) = delete;
  bool visit(node_id_t from, bool waits) {
    const bool was_there = !of->is_gone;
    if (waits) this_thread::yield();
    ++of->visits;
    of->by_node.at(from) = true;
    return was_there && !of->is_gone;
  }
  record* of;
};

constexpr int visitors_each = 16;
// On every node: how many visits were made.
long visit_until_it_ends() {
  const auto object = resource<visited>::await("visited");
  std::atomic<long> made{0};
  std::atomic<bool> was_always_there{true};
  std::vector<thread> visitors;
  for (int v = 0; v < visitors_each; ++v) {
    visitors.emplace_back([&, v] {
      try {
        for (int i = v;; ++i) {
          if (!object.call<&visited::visit>(node_id(), i % 3 == 0)) was_always_there = false;
          ++made;
          this_thread::yield();
        }
      } catch (const resource_ended_error& e) {
        if (e.node() != 0) was_always_there = false;
      }
    });
  }
  for (thread& v : visitors) v.join();
  require(was_always_there, "an object does not end under a call");
  return made;
}

// ---- tasks ----

std::atomic<int> added{0};
void add_here(int more) { added += more; }
int added_here() { return added; }

void join_all_tasks() {
  task_handle adds = task_handle::await("adds");
  adds.join();
  require(adds.has_ended(), "a task that was joined");
  require(call<added_here>(on_node{last_node()}) == 7, "what it did");
  try {
    task_handle::await("fails").join();
    require(false, "what a task throws");
  } catch (const remote_error& e) {
    require(e.type_name() == "std::range_error" && e.node() == last_node(), e.what());
  } catch (const std::range_error&) {
    require(num_nodes() == 1, "which exception");
  }
}

// ---- looked up again ----

// Names that are at home on every node.
void find_names(runtime& rt, int times) {
  rt.run([times] {
    constexpr int names_each = 16;
    for (int i = 0; i < names_each; ++i) publish(found_name(i), i);
    for (int n = 0; n < times; ++n) {
      for (int i = 0; i < names_each; ++i)
        require(find_name<int>(found_name(i)) == i, "a name is found");
    }
  });
}

}  // namespace

// On all nodes, for names that are published when all wait; and for others that are there.
void names_at_once(runtime& rt) {
  rt.run([] {
    thread waits([] { on_every_node([] { await_all(); }); });
    for (unsigned n = 0; n < num_nodes(); ++n) {
      while (call<waiting_here>(on_node{static_cast<node_id_t>(n)}) != names_wanted)
        this_thread::yield();
    }
    on_every_node([] { publish_share(); });
    waits.join();
    on_every_node([] { find_all_at_once(); });
    for (int i = 0; i < names_wanted; ++i)
      require(withdraw(awaited_name(i)) && withdraw(found_name(i)), "a name is withdrawn");
  });
}

void names_found_once(runtime& rt) { find_names(rt, 1); }
void names_found_often(runtime& rt) { find_names(rt, 10'001); }

void named_objects_end(runtime& rt) {
  rt.run([] {
    for (int round = 0; round < 10; ++round) {
      visited::record r;
      auto object = std::make_unique<named<visited>>("visited", r);
      std::vector<thread> callers;
      std::atomic<long> made{0};
      for (unsigned n = 0; n < num_nodes(); ++n) {
        callers.emplace_back(
            [&made, n] { made += call<visit_until_it_ends>(on_node{static_cast<node_id_t>(n)}); });
      }
      for (unsigned n = 0; n < num_nodes(); ++n) {
        while (!r.by_node.at(n)) this_thread::yield();
      }
      object.reset();
      require(r.is_gone, "it has ended");
      const long visits = r.visits;
      for (thread& t : callers) t.join();
      require(made == visits && r.visits == visits, "every visit was one to an object");
    }
  });
}

void named_tasks(runtime& rt) {
  rt.run([] {
    const on_node last{last_node()};
    const named<shared_task> adds("adds", last, call<add_here>(7));
    const named<shared_task> fails("fails", last, [] { throw std::range_error("no such city"); });
    on_every_node([] { join_all_tasks(); });
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "program_bests.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "../common/require.hpp"
#include "../common/sampled.hpp"
#include "strata/call.hpp"
#include "strata/fiber.hpp"
#include "strata/group.hpp"
#include "strata/membership.hpp"
#include "strata/remote_thread.hpp"
#include "strata/run_group.hpp"
#include "strata/shared_best.hpp"
#include "strata/shared_stop.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::require;

namespace {

constexpr int rounds = 10, threads_of_a_node = 3;

void wait_for(const best_here<int>& best, int value) {
  while (best.value() != value) this_thread::yield();
}

// Each in turn finds what is better than all before, and every other one hears of it.
void find_in_turn(int number, int threads, best_handle<int> all) {
  const best_here<int> best = all.here();
  for (int round = 0; round < rounds; ++round) {
    const int before = round * threads + number;
    wait_for(best, before);
    require(best.improve(before + 1), "a better one");
  }
  wait_for(best, rounds * threads);
  require(!best.improve(rounds * threads), "one that is as good");
}
void all_hear_of_it() {
  const int threads = static_cast<int>(num_nodes()) * threads_of_a_node;
  shared_best<int> best(0);
  std::vector<remote_thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back(on_node{static_cast<node_id_t>(i / threads_of_a_node)},
                     call<find_in_turn>(i, threads, best.handle()));
  for (remote_thread& t : all) t.join();
  require(best.value() == rounds * threads, "its own node's value");
}

// The shortest, and where it is.
struct place {
  float length;
  unsigned where;
};
struct is_longer {
  bool operator()(const place& a, const place& b) const { return a.length > b.length; }
};
using shortest = best_handle<place, is_longer>;

// By fibers, which wait for nobody.
struct finder : threaded {
  shortest all;
  std::atomic<bool>* has_ended;
  void start() {
    const best_here<place, is_longer> best = all.here();
    for (unsigned i = 0; i < 500; ++i)
      best.improve({static_cast<float>(1000 - i) + static_cast<float>(node_id()), i});
    *has_ended = true;
    terminate();
  }
};
void find_in_a_fiber(shortest all) {
  (void)all.here();  // the first time on a node somebody has to wait for the answer
  std::atomic<bool> has_ended{false};
  invoke<finder>(node_id(), all, local_address(&has_ended));
  while (!has_ended) this_thread::yield();
}
void fibers_find() {
  shared_best<place, is_longer> best({1e9F, 0});
  on_every_node(call<find_in_a_fiber>(best.handle()));
  const place found = best.of_all_nodes();
  require(found.length == 501 && found.where == 499, "the shortest of all");
}

// Nodes that begin to follow while others find; many bests, one after the other.
void race() {
  run_group(2, [](group& all) {
    for (unsigned i = 0; i < test::sampled(test::scaled(200U, 50U), 30U); ++i) {
      std::optional<shared_best<unsigned>> mine;
      const unsigned maker = i % all.size();
      if (all.rank() == maker) mine.emplace(7U);
      const auto handle = all.broadcast(mine ? mine->handle() : best_handle<unsigned>(), maker);
      const unsigned value = 7 + (i * 31 + all.rank() * 17) % 64;
      const best_here<unsigned> best = handle.here();
      best.improve(value);
      require(best.value() >= value, "no worse than what it found");
      const unsigned greatest =
          all.all_reduce(value, [](unsigned a, unsigned b) { return std::max(a, b); });
      if (mine) require(mine->of_all_nodes() == greatest, "the greatest of all");
      while (best.value() != greatest) this_thread::yield();
      all.barrier();
    }
  });
}

// A handle to one that has ended, and one to none.
bool has_ended(best_handle<int> all) {
  try {
    (void)all.here();
  } catch (const resource_ended_error&) {
    return true;
  }
  return false;
}
void end() {
  best_handle<int> gone;
  try {
    (void)gone.here();
    require(false, "a handle to none is refused");
  } catch (const misuse_error&) {
  }
  std::optional<best_here<int>> kept;
  {
    shared_best<int> best(1);
    gone = best.handle();
    kept = best.here();
    for (const node_id_t n : members()) require(!call<has_ended>(on_node{n}, gone), "one that is");
  }
  require(kept->improve(2) && kept->value() == 2, "what is known outlives it");
  for (const node_id_t n : members())
    require(call<has_ended>(on_node{n}, gone), "one that has ended");
}

// Each node's only worker looks, and gives way to nobody.
void wait_at_work(const best_here<int>& best, int value) {
  while (best.value() < value) {
  }
}
void find_at_work(int number, int nodes, best_handle<int> all) {
  const best_here<int> best = all.here();
  for (int round = 0; round < rounds; ++round) {
    wait_at_work(best, round * nodes + number);
    require(best.improve(round * nodes + number + 1), "a better one");
  }
  wait_at_work(best, rounds * nodes);
}
// The last one requests it once all are at work; it hears that from them.
void look_at_work(int number, int nodes, best_handle<int> begun, stop_handle stop) {
  const best_here<int> best = begun.here();
  const stop_token found = stop.token();
  wait_at_work(best, number);
  (void)best.improve(number + 1);
  if (number + 1 == nodes) require(stop.request(), "the first request");
  while (!found.stop_requested()) {
  }
}

// f(number, nodes, handles...) on each; at last where these are.
template <auto F, class... Handles>
void on_all_at_once(const Handles&... handles) {
  const int nodes = static_cast<int>(num_nodes());
  std::vector<remote_thread> all;
  for (int i = nodes; i-- > 0;)
    all.emplace_back(on_node{static_cast<node_id_t>(i)}, call<F>(i, nodes, handles...));
  for (remote_thread& t : all) t.join();
}

}  // namespace

void bests_at_work(runtime& rt) {
  rt.run([] {
    shared_best<int> best(0);
    on_all_at_once<find_at_work>(best.handle());
    shared_best<int> begun(0);
    shared_stop stop;
    on_all_at_once<look_at_work>(begun.handle(), stop.handle());
  });
}

void bests(runtime& rt) {
  rt.run([] {
    all_hear_of_it();
    fibers_find();
    race();
    end();
  });
}

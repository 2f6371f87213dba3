// SPDX-License-Identifier: Apache-2.0
#include "program_stops.hpp"

#include <atomic>
#include <functional>
#include <vector>

#include "../common/require.hpp"
#include "../common/sampled.hpp"
#include "strata/group.hpp"
#include "strata/remote_thread.hpp"
#include "strata/shared_stop.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::require;

namespace {

// Of this node.
std::atomic<int> beginning{0};
std::atomic<int> called_back{0};

// Goes on until it is told; the one of that number has found it once all have begun.
int look(int number, int finder, stop_handle stop) {
  const stop_token found = stop.token();
  beginning.fetch_add(1);
  if (number == finder) require(stop.request(), "the first request");
  while (!found.stop_requested()) this_thread::yield();
  require(!stop.request(), "a later request");
  return 1;
}

void all_look(int each) {
  const int nodes = static_cast<int>(num_nodes());
  for (int finder = 0; finder < nodes * each; finder += each) {
    shared_stop stop;
    std::vector<remote_thread> threads;
    for (int i = 0; i < nodes * each; ++i)
      threads.emplace_back(on_node{static_cast<node_id_t>(i / each)},
                           call<look>(i, finder, stop.handle()));
    for (remote_thread& t : threads) t.join();
    require(stop.token().stop_requested(), "the maker's own token");
  }
}

// Whoever takes a token after the request finds it, and callbacks have been called when the request
// returns.
void ask_and_call_back(stop_handle stop) {
  static thread waiting;
  waiting = thread([stop] {
    const stop_token t = stop.token();
    latch over{1};
    const stop_callback tell(t, [&] {
      ++called_back;
      over.count_down();
    });
    beginning = -1;
    over.wait();
  });
  while (beginning != -1) this_thread::yield();
  beginning = 0;
  waiting.detach();
}
int callbacks() { return called_back.exchange(0); }
bool has_stopped(stop_handle stop) { return stop.token().stop_requested(); }

void callbacks_are_called_first() {
  shared_stop stop;
  for (const node_id_t n : members()) call<ask_and_call_back>(on_node{n}, stop.handle());
  const node_id_t last = static_cast<node_id_t>(num_nodes() - 1);
  const auto request = [](stop_handle s) { return s.request(); };
  require(call<request>(on_node{last}, stop.handle()), "a request of another node");
  for (const node_id_t n : members())
    require(call<callbacks>(on_node{n}) == 1, "a callback, when the request returns");
  shared_stop early;
  require(early.request() && !early.request(), "one request");
  for (const node_id_t n : members())
    require(call<has_stopped>(on_node{n}, early.handle()), "a token taken after the request");
}

// Nodes that take tokens while others request; many stops, one after the other.
void race() {
  run_group(2, [](group& all) {
    for (unsigned i = 0; i < test::sampled(test::scaled(200U, 50U), 30U); ++i) {
      std::optional<shared_stop> mine;
      if (all.rank() == i % all.size()) mine.emplace();
      const stop_handle stop = all.broadcast(mine ? mine->handle() : stop_handle(), i % all.size());
      const bool first = all.rank() % 2 == 0 && stop.request();
      const stop_token t = stop.token();
      require(all.all_reduce(first ? 1 : 0, std::plus<>()) == 1, "one first request");
      require(t.stop_requested(), "a stop that has been requested");
      all.barrier();
    }
  });
}

// A handle to one that has ended, and one to none.
std::string end_of(stop_handle stop) {
  try {
    (void)stop.token();
  } catch (const resource_ended_error&) {
    return "ended";
  }
  return "";
}
void ends() {
  stop_handle gone;
  require(!gone.token().stop_possible(), "the token of no stop");
  {
    shared_stop stop;
    gone = stop.handle();
    for (const node_id_t n : members())
      require(!call<has_stopped>(on_node{n}, gone), "no stop requested");
  }
  for (const node_id_t n : members()) {
    const auto ended = [](stop_handle s) { return end_of(s) == "ended"; };
    require(call<ended>(on_node{n}, gone), "a stop that has ended");
  }
}

}  // namespace

void stops(runtime& rt) {
  rt.run([] {
    all_look(1);
    all_look(3);
    callbacks_are_called_first();
    race();
    ends();
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "program_calls.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/interrupted_one.hpp"
#include "../common/require.hpp"
#include "program_support.hpp"
#include "sched/ticker.hpp"
#include "strata/membership.hpp"
#include "strata/remote_thread.hpp"
#include "strata/route.hpp"
#include "strata/thread.hpp"

using namespace strata;
using test::last_node;
using test::require;

namespace {

// Of four nodes the first two share a host, and the last two. All know that, whoever asks.
void expect_nearest() {
  using nodes = std::array<node_id_t, 3>;
  require(nearest_node(0, nodes{2, 1, 3}) == 1, "on the host of node 0");
  require(nearest_node(3, nodes{0, 1, 2}) == 2, "on the host of node 3");
  require(nearest_node(2, nodes{1, 0, 1}) == 1, "of two equal ones the first");
  require(nearest_node(1, nodes{0, 1, 2}) == 1, "the node itself");
  require(nearest_node(1, nodes{9, 2, 9}) == 2, "who is not there does not count");
  for (const node_id_t nobody : {node_id_t{4}, node_id_t{9}}) {
    try {
      (void)nearest_node(0, std::array{nobody});
      require(false, "somebody of nobody");
    } catch (const misuse_error&) {
    }
    try {
      (void)nearest_node(nobody, nodes{0, 1, 2});
      require(false, "near to nobody");
    } catch (const misuse_error&) {
    }
  }
}

int squared(int x) { return x * x; }
void throws(int x) { throw std::out_of_range("number " + std::to_string(x)); }
node_id_t where() { return node_id(); }
void note(global_ptr<std::atomic<unsigned>> place, node_id_t n) { *place.local() = n; }
void asks(node_id_t whom, int x) { call<throws>(on_node{whom}, x); }
std::atomic<int> calls_here{0};
std::atomic<bool> may_end{false};
void wait_to_end() {
  while (!may_end.exchange(false)) this_thread::yield();
}

// Nobody can wait outside for what is made on another node.
void join_outside(runtime& rt) {
  if (rt.run([] { return num_nodes(); }) == 1) return;
  remote_thread t = rt.run([] { return remote_thread(on_node{last_node()}, call<wait_to_end>()); });
  try {
    t.join();
    require(false, "a wait outside");
  } catch (const misuse_error&) {
  }
  try {
    (void)t.wait_for(std::chrono::milliseconds(1));
    require(false, "a timed wait outside");
  } catch (const misuse_error&) {
  }
  require(t.joinable(), "who could not be joined");
  rt.run([&] {
    call<[] { may_end = true; }>(on_node{last_node()});
    t.join();
  });
}

// What throws() throws, by the nodes that it left.
void require_thrown(const remote_error& e, int x, const std::vector<node_id_t>& trace) {
  require(e.node() == trace.front() && e.trace() == trace, e.what());
  require(e.type_name() == "std::out_of_range", e.type_name());
  require(e.message() == "number " + std::to_string(x), e.message());
}

}  // namespace

void find_nearest(runtime& rt) {
  rt.run([] {
    for (const node_id_t n : members()) call<expect_nearest>(on_node{n});
    const route near = route_to(1);
    const route far = route_to(2);
    require(!near.is_measured && !far.is_measured, "nothing was measured");
    require(0 < near.cost_ns && near.cost_ns < far.cost_ns, "costs");
    require(0 < near.latency_ns && near.latency_ns < far.latency_ns, "latencies");
    require(near.bytes_per_s > far.bytes_per_s && far.bytes_per_s > 0, "bandwidths");
    if (!detail::ticker::is_safe()) return;
    test::share_with_an_interrupted_one([](const auto& goes_on) {
      while (goes_on()) expect_nearest();
    });
  });
}

void calls(runtime& rt) {
  rt.run([] {
    for (unsigned n = 0; n < num_nodes(); ++n) {
      const on_node there{static_cast<node_id_t>(n)};
      require(call<squared>(there, 7) == 49, "a result");
      require(call<where>(there) == n, "where a call is made");
      // A number is the node where the function cannot be called with it.
      require(call<where>(n) == n && call<squared>(n, 7) == 49, "where a number sends it");
      std::atomic<unsigned> ran_on{~0U};
      remote_thread(
          n,
          [](global_ptr<std::atomic<unsigned>> answer, node_id_t home) {
            call<note>(home, answer, node_id());
          },
          to_global(&ran_on), node_id())
          .join();
      require(ran_on == n, "where a number sends a thread");
    }
    try {
      call<throws>(on_node{last_node()}, 5);
      require(false, "an exception");
    } catch (const remote_error& e) {
      require_thrown(e, 5, {last_node()});
    } catch (const std::out_of_range&) {
      require(num_nodes() == 1, "which exception");
    }
    try {
      call<where>(on_node{static_cast<node_id_t>(num_nodes())});
      require(false, "a node that does not exist");
    } catch (const misuse_error&) {
    }
    {
      remote_thread lasting(on_node{last_node()}, call<wait_to_end>());
      require(!lasting.wait_for(std::chrono::milliseconds(1)), "it has ended");
      require(!lasting.wait_until(std::chrono::steady_clock::now()), "it has ended by now");
      call<[] { may_end = true; }>(on_node{last_node()});
      require(lasting.wait_for(std::chrono::hours(1)), "it has not ended");
      require(lasting.wait_for(std::chrono::seconds(0)), "it has ended before");
      lasting.join();
      remote_thread failing(on_node{last_node()}, call<throws>(4));
      require(failing.wait_for(std::chrono::hours(1)), "an error is an end");
      try {
        failing.join();
        require(false, "the error of a thread that has been awaited");
      } catch (const remote_error& e) {
        require_thrown(e, 4, {last_node()});
      } catch (const std::out_of_range&) {
        require(num_nodes() == 1, "which exception of one that has been awaited");
      }
    }
    on_every_node([](int more) { calls_here += more; }, 3);
    on_every_node([] { require(calls_here == 3, "one call on each node"); });
    remote_thread t(on_node{last_node()}, call<throws>(6));
    try {
      t.join();
      require(false, "an exception of a thread");
    } catch (const remote_error& e) {
      require_thrown(e, 6, {last_node()});
    } catch (const std::out_of_range&) {
      require(num_nodes() == 1, "which exception of a thread");
    }
    // Home again by another node, and from the last one by the first after this.
    const auto next = static_cast<node_id_t>(1 % num_nodes());
    for (const node_id_t whom : {node_id_t{0}, last_node()}) {
      if (whom == next) continue;
      try {
        remote_thread(on_node{next}, call<asks>(whom, 7)).join();
        require(false, "an exception by way of another node");
      } catch (const remote_error& e) {
        require_thrown(e, 7, {whom, next});
      }
    }
    remote_thread(on_node{last_node()}, [] {}).detach();
  });
  join_outside(rt);
}

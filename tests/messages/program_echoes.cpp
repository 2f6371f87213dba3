// SPDX-License-Identifier: Apache-2.0
#include "program_echoes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::pattern_of;
using test::require;

// Sends back what it gets, until it gets nothing.
void echo(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  for (;;) {
    const message m = mine.receive_message(to);
    if (m.content.empty()) return;
    mine.send(to, m.tag, m.content);
  }
}

}  // namespace

void echoes(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    remote_thread other(on_node{last_node()}, call<echo>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>();
    require(to.node() == last_node(), "where the other is");
    unsigned seed = 0;
    for (const std::size_t bytes :
         {1UL, 64UL, 16384UL, 16385UL, 65536UL, 65537UL, 1UL << 20, 9UL << 20}) {
      for (int i = 0; i < 3; ++i) {
        const std::vector<std::byte> out = pattern_of(bytes, ++seed);
        const transfer sends = mine.start_send(to, seed, out);
        std::vector<std::byte> in(bytes);
        const message_info m = mine.receive(in, to, seed);
        require(m.bytes == bytes && m.source == to, "what comes back");
        require(test::same(in, out), "the same bytes");
      }
    }
    // Elements, less than there is room for.
    for (const std::size_t n : {1UL, 1000UL}) {
      std::vector<double> out(n), in(n + 5, -1);
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(i) / 4;
      transfer sends = mine.start_send(to, 0, std::span(out).first(n));
      const message_info m = mine.receive(in, to, 0);
      require(m.count_of<double>() == n, "how many elements");
      require(std::equal(out.begin(), out.end(), in.begin()) && in[n] == -1, "the same elements");
      sends.wait();
    }
    mine.send(to, 0, std::span<const std::byte>());
    other.join();
    try {
      // What comes too late for the first is known to the second.
      for (int i = 0; i < 1'000'000; ++i) mine.send_value(to, 0, i);
      require(false, "an endpoint that has ended");
    } catch (const endpoint_closed_error& e) {
      require(e.which() == to, "which has ended");
    }
    try {
      mine.start_synchronous_send(to, 0, bytes_of(1)).wait();
      require(false, "an endpoint that has ended, synchronously");
    } catch (const endpoint_closed_error&) {
    }
  });
}

namespace {

// Ends before anybody can have sent to it.
endpoint_id gone_at_once() { return endpoint().id(); }

// Receives two, and ends.
void receive_two(endpoint_id boss) {
  endpoint mine;
  mine.send_value(boss, 0, mine.id());
  for (int i = 0; i < 2; ++i) require(mine.receive_value<int>(boss) == i, "in order");
}

void expect_ended(const char* what, endpoint_id which, const auto& step) {
  try {
    step();
    require(false, what);
  } catch (const endpoint_closed_error& e) {
    require(e.which() == which, what);
  }
}

}  // namespace

// A send is told of success where nobody is any more. When that is over: no later than with
// flush(), and the next send throws at once.
void ended_targets(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    const on_node there{last_node()};
    {
      const endpoint_id gone = call<gone_at_once>(there);
      if (gone.node() != node_id()) mine.send_value(gone, 1, 5);
      expect_ended("what is refused", gone, [&] { mine.flush(gone); });
      expect_ended("the next one", gone, [&] { mine.send_value(gone, 1, 5); });
    }
    {
      // The same for who has sent nothing.
      const endpoint_id gone = call<gone_at_once>(there);
      expect_ended("nothing is sent", gone, [&] { mine.flush(gone); });
      expect_ended("the first one", gone, [&] { mine.send_value(gone, 1, 5); });
    }
    // Without: what was refused comes back before the answer of a call that was made afterwards.
    {
      const endpoint_id gone = call<gone_at_once>(there);
      if (gone.node() != node_id()) mine.send_value(gone, 1, 5);
      (void)call<gone_at_once>(there);
      expect_ended("the second one", gone, [&] { mine.send_value(gone, 1, 5); });
    }
    {
      const endpoint_id gone = call<gone_at_once>(there);
      using namespace std::chrono_literals;
      expect_ended("synchronously, by a deadline", gone, [&] {
        transfer t = mine.start_synchronous_send(gone, 1, bytes_of(5));
        require(t.wait_for(10s).has_value(), "before the deadline");
      });
    }
    remote_thread other(there, call<receive_two>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>();
    // What has been flushed is there, however much there is besides.
    mine.send_value(to, 0, 0);
    mine.flush(to);
    mine.send_value(to, 0, 1);
    other.join();
    expect_ended("who has received all", to, [&] { mine.flush(to); });
  });
}

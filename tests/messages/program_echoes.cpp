// SPDX-License-Identifier: Apache-2.0
#include "program_echoes.hpp"

#include <algorithm>
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

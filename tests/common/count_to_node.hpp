// SPDX-License-Identifier: Apache-2.0
// What shows that nothing is lost, doubled or overtaken between nodes 0 and 2.
#pragma once
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "tests/common/require.hpp"

namespace strata::test {

// A conversation with node 2: there Far, a lambda that captures nothing, is called with an endpoint
// and whom to talk to, here `near` with the same.
template <class Far, class Near>
void talk_to_node_2(Far, Near near) {
  endpoint mine;
  remote_thread other(
      on_node{2},
      [](endpoint_id home) {
        endpoint here;
        here.send_value(home, 1, here.id());
        Far{}(here, home);
      },
      mine.id());
  const auto theirs = mine.receive_value<endpoint_id>(any_endpoint, 1);
  near(mine, theirs);
  other.join();
}

// Numbers to node 2 and back, in order, whatever way they take; until `enough`.
template <class F>
void count_to_node_2(F enough) {
  talk_to_node_2(
      [](endpoint& here, endpoint_id home) {
        for (int next = 0;; ++next) {
          const int i = here.receive_value<int>(home, 2);
          here.send_value(home, 3, i == next ? i : -2);
          if (i < 0) return;
        }
      },
      [&](endpoint& mine, endpoint_id theirs) {
        constexpr int ahead = 64;  // under way
        int sent = 0, received = 0;
        while (!enough() || received < 1000) {
          for (; sent < received + ahead; ++sent) mine.send_value(theirs, 2, sent);
          require(mine.receive_value<int>(theirs, 3) == received++, "once and in order");
        }
        for (; received < sent; ++received)
          require(mine.receive_value<int>(theirs, 3) == received, "once and in order");
        mine.send_value(theirs, 2, -1);
        (void)mine.receive_value<int>(theirs, 3);
      });
}

}  // namespace strata::test

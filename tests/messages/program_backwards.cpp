// SPDX-License-Identifier: Apache-2.0
#include "program_backwards.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "../common/require.hpp"
#include "../common/sampled.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::require;

// Much more than there is room for, in messages or in envelopes.
constexpr int senders = test::sampled(5000, 2000);
using content = std::array<std::byte, 1024>;

content numbered(int i) {
  content c{};
  std::memcpy(c.data(), &i, sizeof i);
  return c;
}
int number_of(const content& c) {
  int i = 0;
  std::memcpy(&i, c.data(), sizeof i);
  return i;
}

// Each sends two, the second when the first has found room.
void send_from_all(endpoint_id to) {
  std::vector<endpoint_id> all(senders);
  latch are_there(senders), may_send(1);
  std::vector<thread> threads;
  for (int i = 0; i < senders; ++i) {
    threads.emplace_back([&, i] {
      endpoint& mine = this_thread::endpoint();
      all[static_cast<std::size_t>(i)] = mine.id();
      are_there.count_down();
      may_send.wait();
      for (int n = 0; n < 2; ++n) mine.send(to, static_cast<message_tag>(i), numbered(i));
    });
  }
  are_there.wait();
  this_thread::endpoint().send(to, senders, all);
  may_send.count_down();
  for (thread& t : threads) t.join();
}

}  // namespace

void received_backwards(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread other(on_node{last_node()}, call<send_from_all>(mine.id()));
    std::vector<endpoint_id> all(senders);
    mine.receive(all, any_endpoint, senders);
    content c{};
    for (int i = senders - 1; i >= 0; --i) {
      mine.receive(c, all[static_cast<std::size_t>(i)]);
      require(number_of(c) == i, "the message of that source");
    }
    for (int i = senders - 1; i >= 0; --i) {
      mine.receive(c, any_endpoint, static_cast<message_tag>(i));
      require(number_of(c) == i, "the message of that tag");
    }
    other.join();
    require(!mine.probe(), "each message once");
  });
}

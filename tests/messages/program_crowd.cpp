// SPDX-License-Identifier: Apache-2.0
#include "program_crowd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::hello;
using test::require;

constexpr int friends = 40;  // on each node
constexpr int messages_each = 250;

// All to all at random; `book` says who there is. Everybody hears from everybody how many to await.
void talk(endpoint_id book, std::uint32_t me) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(book, 1, hello{mine.id(), me});
  const message names = mine.receive_message(book, 2);
  std::vector<endpoint_id> all(names.content.size() / sizeof(endpoint_id));
  std::memcpy(all.data(), names.content.data(), names.content.size());
  std::minstd_rand random(me + 1);
  std::vector<std::uint32_t> sent(all.size()), seen(all.size());
  std::uint64_t awaited = 0, received = 0, told = 0;
  const auto take = [&] {
    const message m = mine.receive_message();
    std::uint32_t from = 0, number = 0;
    std::memcpy(&from, m.content.data(), sizeof(from));
    std::memcpy(&number, m.content.data() + sizeof(from), sizeof(number));
    if (m.tag == 4) {
      awaited += number;
      ++told;
    } else {
      require(m.tag == 3 && number == ++seen[from], "the order of a pair");
      ++received;
    }
  };
  for (int i = 0; i < messages_each; ++i) {
    const std::uint32_t to = static_cast<std::uint32_t>(random() % all.size());
    std::vector<std::byte> bytes(8 + random() % (random() % 32 == 0 ? 30'000 : 64));
    const std::uint32_t number = ++sent[to];
    std::memcpy(bytes.data(), &me, sizeof(me));
    std::memcpy(bytes.data() + sizeof(me), &number, sizeof(number));
    transfer sends = mine.start_send(all[to], 3, bytes);
    while (!sends.test()) {
      if (mine.probe()) take();
      this_thread::yield();
    }
    sends.wait();
    while (mine.probe()) take();
  }
  std::vector<std::array<std::uint32_t, 2>> totals;
  for (std::size_t i = 0; i < all.size(); ++i) totals.push_back({me, sent[i]});
  std::vector<transfer> sends;
  for (std::size_t i = 0; i < all.size(); ++i)
    sends.push_back(mine.start_send(all[i], 4, bytes_of(totals[i])));
  while (told != all.size() || received != awaited) take();
  wait_all(sends);
  mine.send_value(book, 5, received);
  // Nobody ends while others may still send to it.
  (void)mine.receive_message(book, 6);
}

}  // namespace

void crowd(runtime& rt) {
  rt.run([] {
    endpoint& book = this_thread::endpoint();
    std::vector<remote_thread> threads;
    std::uint32_t count = 0;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      for (int i = 0; i < friends; ++i)
        threads.emplace_back(on_node{static_cast<node_id_t>(n)}, call<talk>(book.id(), count++));
    }
    std::vector<endpoint_id> all(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto h = book.receive_value<hello>(any_endpoint, 1);
      all[h.number] = h.who;
    }
    for (const endpoint_id e : all) book.send(e, 2, bytes_of(all));
    std::uint64_t received = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      received += book.receive_value<std::uint64_t>(any_endpoint, 5);
    require(received == std::uint64_t{count} * messages_each, "everything arrives once");
    for (const endpoint_id e : all) book.send_value(e, 6, 0);
    for (remote_thread& t : threads) t.join();
  });
}

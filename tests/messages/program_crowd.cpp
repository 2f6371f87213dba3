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

constexpr unsigned crowd_targets = 800, messages_to_each = 25;

void receive_at_all(endpoint_id to) {
  std::vector<endpoint> all(crowd_targets);
  std::vector<endpoint_id> names;
  for (const endpoint& one : all) names.push_back(one.id());
  this_thread::endpoint().send(to, 1, names);
  std::array<std::byte, 1024> content{};
  for (endpoint& one : all) {
    for (unsigned n = 0; n < messages_to_each; ++n) {
      one.receive(content);
      require(std::memcmp(content.data(), &n, sizeof n) == 0, "all to each, in their order");
    }
  }
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

// 20 MiB at once, for all of which their targets have room.
void crowded_network(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread other(on_node{test::last_node()}, call<receive_at_all>(mine.id()));
    std::vector<endpoint_id> names(crowd_targets);
    mine.receive(names, any_endpoint, 1);
    std::vector<thread> threads;
    for (const endpoint_id to : names) {
      threads.emplace_back([to] {
        std::array<std::byte, 1024> content{};
        for (unsigned n = 0; n < messages_to_each; ++n) {
          std::memcpy(content.data(), &n, sizeof n);
          this_thread::endpoint().send(to, 0, content);
        }
      });
    }
    for (thread& t : threads) t.join();
    other.join();
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "program_kept.hpp"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "../common/thread_states.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::is_now;
using test::last_node;
using test::require;

// As docs/messages.md says it.
constexpr std::size_t content_bytes_max = std::size_t{256} << 10;
constexpr std::size_t counted_for_each = 64, kept_for_each = 288;
// So many go with their bytes, and a thousand more as envelopes.
constexpr int numbers_with_room = content_bytes_max / (sizeof(int) + counted_for_each);
constexpr int all_before_it = numbers_with_room + 1000;

constexpr message_tag first_one = 1, second_one = 2, one_of_many = 3, word_tag = 4, wanted_one = 5,
                      last_one = 6;

struct receiver_ends {
  endpoint_id kept, asked;
};

// What the program has of the heap of its process.
std::size_t allocated_bytes() {
  const struct mallinfo2 m = ::mallinfo2();
  return m.uordblks + m.hblkhd;
}

// From now on messages are in all indexes that there are, and these have their memory.
void use_all_indexes(endpoint& mine, endpoint_id other) {
  constexpr message_tag no_tag = 77;
  (void)mine.wait_probe(any_endpoint, second_one);
  require(!mine.probe(any_endpoint, no_tag) && !mine.probe(other) && !mine.probe(other, no_tag),
          "nothing of these");
  const endpoint_id of_this_node = any_endpoint_on(node_id());
  require(!mine.probe(of_this_node) && !mine.probe(of_this_node, no_tag), "nothing of this node");
}

void keep_all(endpoint_id to, std::size_t bytes, bool is_measured) {
  endpoint mine, asked;
  asked.send_value(to, word_tag, receiver_ends{mine.id(), asked.id()});
  use_all_indexes(mine, asked.id());
  const std::size_t before = allocated_bytes();
  asked.send_value(to, word_tag, 1);
  // All of them are there: they went before this, on the same way.
  const int sent = asked.receive_value<int>(any_endpoint, word_tag);
  const std::size_t after = allocated_bytes();
  // A part more for what else goes on meanwhile.
  const std::size_t most = static_cast<std::size_t>(sent) * (kept_for_each + bytes);
  require(!is_measured || after < before + most + most / 16,
          "kept " + std::to_string(after - before) + " bytes of " + std::to_string(sent));
  while (mine.receive_message().tag != last_one) continue;
}

// Sends messages of so many bytes, until there is no room, to somebody who receives none of them.
void fill_room(std::size_t bytes, bool is_measured) {
  endpoint& mine = this_thread::endpoint();
  remote_thread other(on_node{last_node()}, call<keep_all>(mine.id(), bytes, is_measured));
  const auto ends = mine.receive_value<receiver_ends>(any_endpoint, word_tag);
  mine.send(ends.kept, first_one, std::vector<std::byte>(1));
  mine.send(ends.kept, second_one, std::vector<std::byte>(1));
  (void)mine.receive_value<int>(ends.asked, word_tag);
  std::atomic<int> sent{0};
  std::atomic<bool> enough{false};
  // A name of its own: the one before may still be seen.
  const std::string name = "sends " + std::to_string(bytes);
  thread sender({.name = name.c_str()}, [&] {
    const std::vector<std::byte> content(bytes);
    do {
      this_thread::endpoint().send(ends.kept, one_of_many, content);
      ++sent;
    } while (!enough);
    this_thread::endpoint().send(ends.kept, last_one, content);
  });
  while (!is_now(name, "waiting for room for a message")) this_thread::yield();
  const int before_room = sent;
  enough = true;
  require(static_cast<std::size_t>(before_room) * (bytes + counted_for_each) <= content_bytes_max,
          "how many are sent before anything is received");
  mine.send_value(ends.asked, word_tag, before_room);
  sender.join();
  other.join();
}

void find_behind(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, word_tag, mine.id());
  require(mine.receive_value<int>(to, wanted_one) == 1, "the one behind all others");
  for (int i = 0; i < all_before_it; ++i)
    require(mine.receive_value<int>(to, one_of_many) == i, "those before it, in their order");
}

}  // namespace

// Empty messages, and those whose bytes are kept apart.
void kept_memory(runtime& rt) {
  rt.run([&rt] {
    if (last_node() == 0) return;  // within a process others keep what was sent
    // What UCX takes for itself cannot be told from what is kept.
    const bool is_measured = rt.stats().transports.front().name != "ucx";
    fill_room(0, is_measured);
    fill_room(65, is_measured);
  });
}

// What somebody waits for is found behind as much as there is room for, and a thousand others.
void kept_apart(runtime& rt) {
  rt.run([] {
    if (last_node() == 0) return;
    endpoint& mine = this_thread::endpoint();
    remote_thread other(on_node{last_node()}, call<find_behind>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>(any_endpoint, word_tag);
    std::vector<int> numbers(all_before_it);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<transfer> sends;
    for (const int& n : numbers) sends.push_back(mine.start_send(to, one_of_many, bytes_of(n)));
    mine.send_value(to, wanted_one, 1);
    for (transfer& t : sends) t.wait();
    other.join();
  });
}

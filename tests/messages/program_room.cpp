// SPDX-License-Identifier: Apache-2.0
#include "program_room.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "../common/require.hpp"
#include "../common/thread_states.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::is_now;
using test::last_node;
using test::pattern_of;
using test::require;

constexpr int many = 3000;
constexpr std::size_t bytes_of_message(int i) { return static_cast<std::size_t>(i) * 11 % 20'000; }

// What may be sent before it is received, as docs/messages.md says; each message counts 64 bytes
// more.
std::size_t room_bytes() { return std::size_t{last_node() != 0 ? 256U : 64U} << 10; }
constexpr std::size_t counted_besides = 64;

void late(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  (void)mine.receive_message(any_endpoint, 1);  // the word to begin
  for (int i = 0; i < many; ++i) {
    const message m = mine.receive_message(to, 0);
    require(m.content == pattern_of(bytes_of_message(i), static_cast<unsigned>(i)),
            "a message of a fast sender");
  }
}

void report_addresses(endpoint_id to) {
  endpoint kept;
  endpoint last;
  last.send_value(to, 1, kept.id());
  (void)last.receive_value<int>();
}

void receive_on_demand(endpoint_id to) {
  endpoint mine, word;
  word.send_value(to, 1, mine.id());
  const auto all = word.receive_value<int>(to);
  for (int i = 0; i < all; ++i) (void)mine.receive_message();
}

constexpr unsigned crowd_sends = 3000;

void send_in_a_crowd(endpoint_id to, message_tag number) {
  endpoint mine;
  const std::vector<std::byte> content(1000);
  for (unsigned i = 0; i < crowd_sends; ++i) mine.send(to, number, content);
}

void look_for_nothing(endpoint_id to) {
  endpoint kept, word;
  word.send_value(to, 1, kept.id());
  (void)word.receive_value<int>();
  word.send_value(to, 2, kept.probe().has_value());
}

// Ends with its process, when the job is long over.
std::optional<endpoint> last_of_process;
transfer never_received;
constexpr std::array<std::byte, 1000> content{};

endpoint_id open_last() { return last_of_process.emplace().id(); }

void leave_something_in(endpoint_id other) {
  for (const message_tag tag : {1U, 2U}) last_of_process->send(other, tag, content);
  never_received = last_of_process->start_synchronous_send(other, 3, content);
}

}  // namespace

// Up to the limit a send ends before anybody receives, above it with the receive.
void eager_limit(runtime& rt) {
  rt.run([&rt] {
    const bool is_near = last_node() != 0 && rt.stats().transports.front().name == "shm";
    const std::size_t limit = is_near ? std::size_t{64} << 10 : eager_bytes_everywhere;
    endpoint mine;
    remote_thread other(on_node{last_node()}, call<receive_on_demand>(mine.id()));
    endpoint_id to;
    const endpoint_id word = mine.receive(std::as_writable_bytes(std::span(&to, 1))).source;
    const std::vector<std::byte> large(limit + 1);
    mine.send(to, 1, std::span(large).first(limit));
    transfer above = mine.start_send(to, 1, large);
    require(!above.test(), "one above the limit waits");
    mine.send_value(word, 1, 2);
    above.wait();
    other.join();
  });
}

// Endpoints of all nodes, with messages of others in them, and a send that nobody receives.
void outlives_its_runtime(runtime& rt) {
  rt.run([] {
    std::vector<endpoint_id> all;
    for (node_id_t n = 0; n < num_nodes(); ++n) all.push_back(call<open_last>(on_node{n}));
    for (node_id_t n = 0; n < num_nodes(); ++n)
      call<leave_something_in>(on_node{n}, all[(n + 1) % all.size()]);
  });
}

// The receiver takes its time; the sender has to wait, and everything is there in the end.
void slow_receiver(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    remote_thread other(on_node{last_node()}, call<late>(mine.id()));
    const auto to = mine.receive_value<endpoint_id>();
    std::atomic<int> sent{0};
    thread sender({.name = "sender"}, [&] {
      for (int i = 0; i < many; ++i) {
        mine.send(to, 0, pattern_of(bytes_of_message(i), static_cast<unsigned>(i)));
        ++sent;
      }
    });
    // Once it waits for room it waits until we say the word. Should it never, it is through.
    while (sent < many && !is_now("sender", "waiting for room for a message")) this_thread::yield();
    // Within a process the last one may be more than there is room for.
    std::size_t sent_bytes = 0;
    for (int i = 0; i + 1 < sent; ++i) sent_bytes += bytes_of_message(i) + counted_besides;
    require(sent_bytes <= room_bytes(), "how much is sent before anything is received");
    endpoint().send_value(to, 1, 0);
    sender.join();
    other.join();
  });
}

// Several threads on the one worker of another node send to one endpoint, faster than it receives:
// none takes all of the room. (Within a process: endpoint_waits_test.cpp.)
void room_in_turn(runtime& rt) {
  rt.run([] {
    constexpr unsigned senders = 4;
    std::vector<remote_thread> threads;
    endpoint mine;
    for (message_tag i = 0; i < senders; ++i)
      threads.emplace_back(on_node{last_node()}, call<send_in_a_crowd>(mine.id(), i));
    std::array<unsigned, senders> received{};
    for (unsigned i = 0; i < senders * crowd_sends; ++i) {
      ++received.at(mine.receive_message().tag);
      if (i != senders * crowd_sends / 2) continue;
      for (const unsigned n : received)
        require(n >= crowd_sends / 4, "what a thread has sent beside others");
    }
    for (remote_thread& t : threads) t.join();
  });
}

// A send that waits for room is cancelled; the next one has room.
void cancelled_send(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread keeper(on_node{last_node()}, call<report_addresses>(mine.id()));
    endpoint_id full;
    const message_info first = mine.receive(std::as_writable_bytes(std::span(&full, 1)));
    const std::vector<std::byte> much(16384);
    std::vector<transfer> sends;
    const int little = 1;
    if (last_node() != 0) {  // within a node there is always room
      do {
        sends.push_back(mine.start_send(full, 1, much));
      } while (sends.back().test());
      transfer next = mine.start_send(full, 2, bytes_of(little));
      require(!next.test(), "waits behind it");
      require(sends.back().cancel(), "waits for room");
      next.wait();
    }
    mine.send_value(first.source, 1, little);
    keeper.join();
  });
}

// A synchronous send and a large one that nobody receives end with their scope, and leave nothing.
void given_up(runtime& rt) {
  rt.run([] {
    using namespace std::chrono_literals;
    endpoint mine;
    remote_thread keeper(on_node{last_node()}, call<look_for_nothing>(mine.id()));
    endpoint_id kept;
    const message_info first = mine.receive_value_into(kept, any_endpoint, 1);
    const std::vector<std::byte> large(1UL << 20);
    {
      transfer waits = mine.start_synchronous_send(kept, 1, bytes_of(kept));
      require(!waits.wait_for(1ms), "a synchronous send that nobody receives");
    }
    {
      transfer waits = mine.start_send(kept, 2, large);
      require(!waits.wait_for(1ms), "a large one that nobody receives");
    }
    { const transfer at_once = mine.start_send(kept, 3, large); }
    mine.send_value(first.source, 1, 0);
    require(!mine.receive_value<bool>(first.source, 2), "nothing of them is there");
    keeper.join();
  });
}

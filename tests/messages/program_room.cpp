// SPDX-License-Identifier: Apache-2.0
#include "program_room.hpp"

#include <atomic>
#include <cstddef>
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

}  // namespace

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

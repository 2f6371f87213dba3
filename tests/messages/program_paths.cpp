// SPDX-License-Identifier: Apache-2.0
#include "program_paths.hpp"

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::pattern_of;
using test::require;

using small = std::array<std::byte, 64>;
constexpr std::size_t large_bytes = std::size_t{4} << 20;
constexpr message_tag small_one = 1, answer = 2, large_one = 3, empty_one = 4;

void answer_small_send_large(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 0, mine.id());
  mine.send_value(to, answer, mine.receive_value<small>(to, small_one));
  mine.send(to, large_one, pattern_of(large_bytes, 1));
  mine.start_synchronous_send(to, empty_one, std::span<const std::byte>()).wait();
}

// What a message brings is handled before it is counted as carried.
statistics once_carried(runtime& rt, const statistics& before, std::size_t bytes_in) {
  for (;;) {
    statistics now = rt.stats();
    if (now.transports.front().bytes_in >= before.transports.front().bytes_in + bytes_in)
      return now;
    this_thread::yield();
  }
}

// Messages of others change what transports have carried, too, so that is a lower limit.
void require_sent(const statistics& before, const statistics& after) {
  require(after.messages.sent_whole == before.messages.sent_whole + 1, "a small one goes whole");
  const transport_statistics& was = before.transports.front();
  const transport_statistics& is = after.transports.front();
  require(is.messages_out > was.messages_out, "a message that has gone out");
  require(is.bytes_out >= was.bytes_out + sizeof(small), "its bytes");
  require(is.writes > was.writes, "what carried it");
  require(after.messages.bytes_copied >= before.messages.bytes_copied + sizeof(small),
          "the answer is copied");
}

// The path of a large one.
const char* path_taken(const statistics& before, const statistics& after) {
  const message_statistics& was = before.messages;
  const message_statistics& is = after.messages;
  require(is.sent_whole == was.sent_whole && is.helped == was.helped, "nothing was sent");
  require(is.read + is.moved + is.pulled == was.read + was.moved + was.pulled + 1,
          "a large one takes one path");
  const std::uint64_t copied = is.bytes_copied - was.bytes_copied;
  if (is.read != was.read) {
    require(after.transports.front().bytes_in < before.transports.front().bytes_in + large_bytes,
            "what is read there travels by nothing else");
    require(copied <= large_bytes, "read once at most");
    return "read";
  }
  require(copied == (is.moved != was.moved ? 0 : large_bytes), "pieces are copied");
  return is.moved != was.moved ? "moved" : "in pieces";
}

}  // namespace

// Prints the transport, and the path of a large message: who started the job knows what is right.
void paths(runtime& rt) {
  rt.run([&rt] {
    endpoint& mine = this_thread::endpoint();
    remote_thread(on_node{last_node()}, call<answer_small_send_large>(mine.id())).detach();
    const auto to = mine.receive_value<endpoint_id>(any_endpoint, 0);
    const statistics first = rt.stats();
    require(first.transports.size() == 1 && first.forwarded == 0, "one network");
    mine.send_value(to, small_one, small{});
    (void)mine.receive_value<small>(to, answer);
    const statistics second = once_carried(rt, first, sizeof(small));
    require_sent(first, second);
    std::vector<std::byte> in(large_bytes);
    mine.receive(in, to, large_one);
    require(test::same(in, pattern_of(large_bytes, 1)), "what has come");
    const bool is_read = rt.stats().messages.read != second.messages.read;
    const statistics third = once_carried(rt, second, is_read ? 0 : large_bytes);
    std::printf("by %s, large ones %s\n", third.transports.front().name.c_str(),
                path_taken(second, third));
    require(mine.receive(std::span<std::byte>(), to, empty_one).bytes == 0, "nothing");
    const message_statistics now = rt.stats().messages;
    require(now.read + now.moved + now.pulled ==
                third.messages.read + third.messages.moved + third.messages.pulled,
            "the envelope is all of it");
    // Within the process no transport is asked.
    endpoint here;
    transfer receives = here.start_receive(in);
    mine.send(here.id(), large_one, pattern_of(large_bytes, 2));
    receives.wait();
    const statistics last = rt.stats();
    require(last.messages.copied_once == third.messages.copied_once + 1, "copied once, here");
    require(last.messages.bytes_copied == third.messages.bytes_copied + large_bytes, "all of it");
    require(last.messages.sent_whole == third.messages.sent_whole, "not to another node");
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "program_registered.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/registered_memory.hpp"
#include "strata/remote_thread.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::pattern_of;
using test::require;

// From which on a network moves blocks from buffer to buffer, if any does.
constexpr std::size_t moved_min = std::size_t{128} << 10;
constexpr std::size_t room = 4'000'000;
struct part {
  std::size_t offset, bytes;
};
constexpr std::array<part, 9> parts{{{0, 0},
                                     {1, 1},
                                     {4096, 4096},
                                     {7, 70'000},
                                     {100, moved_min - 1},
                                     {8192, moved_min},
                                     {room - moved_min - 1, moved_min + 1},
                                     {123, 3'000'000},
                                     {0, room}}};
constexpr message_tag hello = 1, forth = 2, back = 3, at_rest = 4;

// Ends after its node's runtime.
std::vector<std::byte> buffer_to_the_end;
registered_memory kept_to_the_end;

void keep_some_to_the_end() {
  buffer_to_the_end.resize(100'000);
  kept_to_the_end = registered_memory(buffer_to_the_end);
}

void send_back(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  std::vector<std::byte> buffer(room);
  const registered_memory prepared(buffer);
  keep_some_to_the_end();
  mine.send_value(to, hello, mine.id());
  for (int i = 0; i < 2; ++i) {
    for (const part& p : parts) {
      const auto here = std::span(buffer).subspan(p.offset, p.bytes);
      require(mine.receive(here, to, forth).bytes == p.bytes, "all of it");
      mine.send(to, back, std::span<const std::byte>(here));
    }
  }
  // From memory and into memory whose registration ends meanwhile.
  mine.receive(buffer, to, at_rest);
  mine.send(to, at_rest, std::span<const std::byte>(buffer));
}

void go_and_come(endpoint& mine, endpoint_id other, std::span<std::byte> buffer, unsigned seed) {
  for (const part& p : parts) {
    const auto here = buffer.subspan(p.offset, p.bytes);
    const std::vector<std::byte> expected = pattern_of(p.bytes, ++seed);
    std::copy(expected.begin(), expected.end(), here.begin());
    mine.start_send(other, forth, std::span<const std::byte>(here)).wait();
    std::fill(here.begin(), here.end(), std::byte{0});
    require(mine.receive(here, other, back).bytes == p.bytes, "all of it comes back");
    require(test::same(here, expected), "a part of registered memory");
  }
}

}  // namespace

void registered(runtime& rt) {
  rt.run([&rt] {
    endpoint& mine = this_thread::endpoint();
    remote_thread echo(on_node{last_node()}, call<send_back>(mine.id()));
    const auto other = mine.receive_value<endpoint_id>(any_endpoint, hello);
    const std::uint64_t moved_before = rt.stats().messages.moved;
    std::vector<std::byte> buffer(room);
    std::uint64_t uses = 0;
    {
      // Two that overlap, of which only one has all of the larger parts; it is moved.
      registered_memory first(buffer);
      const registered_memory second{std::span(buffer).subspan(50'000, 1'000'000)};
      go_and_come(mine, other, buffer, 1);
      registered_memory whole(std::move(first));
      require(first.bytes().empty(), "what is moved from");  // NOLINT(bugprone-use-after-move)
      go_and_come(mine, other, buffer, 100);
      uses = whole.uses() + second.uses();
    }
    // What has come by a transfer of the network's has also gone by one.
    const std::uint64_t moved = rt.stats().messages.moved - moved_before;
    require(uses == 2 * moved, "transfers of registered memory use that");

    const std::vector<std::byte> expected = pattern_of(room, 7);
    buffer = expected;
    std::vector<std::byte> in(room);
    registered_memory source(buffer), target(in);
    transfer receives = mine.start_receive(in, other, at_rest);
    transfer sends = mine.start_send(other, at_rest, buffer);
    source = registered_memory();
    sends.wait();
    target = registered_memory();
    receives.wait();
    require(test::same(in, expected), "memory whose registration ends meanwhile");
    echo.join();
    keep_some_to_the_end();
    if (moved != 0) std::puts("with its registration");
  });
}

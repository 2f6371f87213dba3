// SPDX-License-Identifier: Apache-2.0
#include "program_large.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::die;
using test::hello;
using test::last_node;
using test::pattern_of;
using test::require;

constexpr std::size_t threshold = std::size_t{128} << 10;
constexpr int large_each = 12;
// About the size from which on a network may transfer them, and far beyond.
std::size_t large_size(unsigned seed) {
  constexpr std::array<std::size_t, 8> sizes = {threshold - 1, threshold, threshold + 1, 16'385,
                                                3'000'000,     70'000,    1UL << 20,     524'289};
  return sizes[seed % sizes.size()];
}

// Sends and receives at once, by several threads; what is handed over arrives as it is, too.
void exchange_large(endpoint_id to, unsigned seed) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 1, hello{mine.id(), seed});
  const auto other = mine.receive_value<endpoint_id>(any_endpoint, 2);
  std::vector<std::vector<std::byte>> out, in;
  std::vector<transfer> all;
  for (unsigned i = 0; i < large_each; ++i) {
    out.push_back(pattern_of(large_size(seed + i), seed + i));
    in.emplace_back(large_size(seed + i) + i % 2);  // more room than needed
    all.push_back(mine.start_receive(in.back(), other, 10 + i));
  }
  for (unsigned i = 0; i < large_each; ++i) all.push_back(mine.start_send(other, 10 + i, out[i]));
  wait_all(all);
  for (unsigned i = 0; i < large_each; ++i) {
    in[i].resize(out[i].size());
    require(test::same(in[i], out[i]), "a large message");
  }
  std::vector<std::byte> given = pattern_of(2'000'000, seed);
  transfer sends = mine.start_send(other, 3, given);
  require(test::same(mine.receive_message(other, 3).content, given),
          "a large message that is handed over");
  sends.wait();  // else its end takes back what the other one has not received yet
}

void large_ones(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 1, mine.id());
  const std::vector<std::byte> out = pattern_of(3'000'000, 1);
  mine.send(to, 4, out);
  mine.send(to, 5, out);
  mine.send(to, 6, out);
  mine.start_synchronous_send(to, 7, out).wait();
  (void)mine.receive_message(to, 8);
  try {
    mine.send(to, 9, out);
    require(false, "an endpoint that ends with a large message at its door");
  } catch (const endpoint_closed_error&) {
  }
}

// While large messages are under way both ways, and one to a third node: their buffers are nobody
// else's once the error is known.
// Many times what sockets hold, so most of it is still to come when a little is there. Filled and
// compared by the C library: what takes sanitizers longer than the launcher waits for those who are
// left is cut off.
constexpr std::size_t very_large = std::size_t{16} << 20, a_little = std::size_t{1} << 20;
std::string all_of_them(char what) { return std::string(very_large, what); }
std::span<const std::byte> bytes_in(const std::string& s) { return std::as_bytes(std::span(s)); }
std::span<std::byte> bytes_into(std::string& s) { return std::as_writable_bytes(std::span(s)); }

void die_in_the_middle(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  const std::string out = all_of_them(1);
  std::string in = all_of_them(0);
  const transfer receives = mine.start_receive(bytes_into(in), to, 2);
  const transfer sends = mine.start_send(to, 3, bytes_in(out));
  mine.send_value(to, 1, mine.id());
  const volatile char& begun = in[a_little];
  while (begun == 0) this_thread::yield();
  die();
}
// Whose messages have failed: they are nobody else's.
void require_left_alone(std::initializer_list<std::string*> buffers) {
  const std::string nines = all_of_them(9);
  for (std::string* const b : buffers) *b = nines;
  for (int i = 0; i < 1000; ++i) this_thread::yield();
  for (const std::string* const b : buffers)
    require(*b == nines, "a buffer after its message has failed");
}
void send_to_the_last(endpoint_id to) {
  const std::string out = all_of_them(1);
  this_thread::endpoint().send(to, 4, bytes_in(out));
}

// Large enough that the sender's node helps to copy.
constexpr std::size_t helped_size = (std::size_t{8} << 20) + 1;
constexpr int helped_times = 20;

void send_often(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  for (unsigned i = 0; i < helped_times; ++i) mine.send(to, 1, pattern_of(helped_size, i));
}

void send_all_in_one(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 1, ::getpid());
  const std::string out = all_of_them(1);
  mine.send(to, 2, bytes_in(out));
}

constexpr std::size_t bytes_read_in_turns = std::size_t{32} << 20;
void send_two(endpoint_id to) {
  endpoint mine;
  const std::vector<std::byte> bytes(bytes_read_in_turns, std::byte{7});
  for (const message_tag tag : {1, 2}) mine.send(to, tag, bytes);
}

}  // namespace

// Others of the receiver's worker have turns while it reads, or makes room. Within a process a copy
// is its thread's work as any other.
void large_gives_way(runtime& rt) {
  rt.run([] {
    if (num_nodes() == 1) return;
    endpoint& mine = this_thread::endpoint();
    remote_thread sender(last_node(), call<send_two>(mine.id()));
    std::atomic<bool> has_ended = false;
    std::atomic<unsigned> turns = 0;
    thread other([&] {
      for (; !has_ended; ++turns) this_thread::yield();
    });
    std::vector<std::byte> into(bytes_read_in_turns);
    (void)mine.wait_probe(any_endpoint, 1);  // from here on nothing has to be waited for
    unsigned before = turns;
    (void)mine.receive(into, any_endpoint, 1);
    const unsigned while_read = turns - before;
    (void)mine.wait_probe(any_endpoint, 2);
    before = turns;
    const message m = mine.receive_message(any_endpoint, 2);
    const unsigned while_there_is_made_room = turns - before;
    has_ended = true;
    other.join();
    require(while_read != 0, "a turn while a message is read");
    require(while_there_is_made_room >= bytes_read_in_turns >> 21, "turns while room is made");
    require(m.content == into, "what was sent");
    sender.join();
  });
}

void large(runtime& rt) {
  rt.run([] {
    endpoint mine;
    const std::vector<std::byte> expected = pattern_of(3'000'000, 1);
    remote_thread other(on_node{last_node()}, call<large_ones>(mine.id()));
    const auto from = mine.receive_value<endpoint_id>(any_endpoint, 1);
    // A buffer too small, and the message is still there.
    std::vector<std::byte> in(2'999'999);
    try {
      mine.receive(in, from, 4);
      require(false, "room for a large message");
    } catch (const message_too_large_error& e) {
      require(e.which().bytes == expected.size(), "how much room it takes");
    }
    in.resize(3'000'000);
    require(mine.receive(in, from, 4).bytes == in.size() && test::same(in, expected),
            "with more room");
    // A receive that is given up before its message comes leaves that to others.
    std::vector<std::byte> unused(3'000'000, std::byte{7});
    transfer given_up = mine.start_receive(unused, from, 77);
    require(given_up.cancel(), "it has not been matched");
    require(test::same(mine.receive_message(from, 5).content, expected), "the next one");
    // One that is under way cannot be given up, or its time runs out: it goes on.
    std::fill(in.begin(), in.end(), std::byte{0});
    transfer under_way = mine.start_receive(in, from, 6);
    if (!under_way.wait_for(std::chrono::nanoseconds(1)) && !under_way.cancel()) under_way.wait();
    if (!test::same(in, expected)) mine.receive(in, from, 6);  // it was given up in time
    require(test::same(in, expected), "a receive with a deadline");
    require(test::all_are(std::byte{7}, unused), "the memory of a receive that was given up");
    require(test::same(mine.receive_message(from, 7).content, expected), "a synchronous one");
    mine.send_value(from, 8, 0);
    (void)mine.wait_probe(from, 9);
    { const endpoint ends = std::move(mine); }
    other.join();

    endpoint book;
    constexpr unsigned threads = 4;
    std::vector<remote_thread> all;
    for (unsigned i = 0; i < threads; ++i) {
      for (const node_id_t node : {node_id_t{0}, last_node()})
        all.emplace_back(on_node{node}, call<exchange_large>(book.id(), i * 31));
    }
    std::map<std::uint32_t, std::vector<endpoint_id>> pairs;  // by their seed
    for (unsigned i = 0; i < 2 * threads; ++i) {
      const auto h = book.receive_value<hello>(any_endpoint, 1);
      pairs[h.number].push_back(h.who);
    }
    for (const auto& [seed, pair] : pairs) {
      book.send_value(pair[0], 2, pair[1]);
      book.send_value(pair[1], 2, pair[0]);
    }
    for (remote_thread& t : all) t.join();
  });
}

void lost_in_the_middle(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      remote_thread(on_node{last_node()}, call<die_in_the_middle>(mine.id())).detach();
      const auto to = mine.receive_value<endpoint_id>(any_endpoint, 1);
      std::string out = all_of_them(1), in = all_of_them(0), third = all_of_them(0);
      remote_thread(on_node{1}, call<send_to_the_last>(mine.id())).detach();
      transfer receives = mine.start_receive(bytes_into(in), to, 3);
      transfer from_third = mine.start_receive(bytes_into(third), any_endpoint, 4);
      transfer sends = mine.start_send(to, 2, bytes_in(out));
      // Nobody receives it, so it is under way when the node dies, even if a machine with too much
      // to do lets the others end before.
      transfer waits = mine.start_send(to, 5, bytes_in(out));
      int told = 0;
      for (transfer* const t : {&receives, &from_third, &sends, &waits}) {
        try {
          t->wait();
        } catch (const node_lost_error&) {
          ++told;
        }
      }
      require(told != 0, "the loss of a node in the middle of messages");
      require_left_alone({&out, &in, &third});
      std::puts("told");
      throw misuse_error("leaves by an exception");
    });
  } catch (const std::exception&) {
  }
}

void copied_by_both(runtime& rt) {
  rt.run([] {
    endpoint mine;
    remote_thread other(on_node{last_node()}, call<send_often>(mine.id()));
    std::vector<std::byte> in(helped_size);
    for (unsigned i = 0; i < helped_times; ++i) {
      std::memset(in.data(), 0, in.size());
      mine.receive(in, any_endpoint, 1);
      require(std::memcmp(in.data(), pattern_of(helped_size, i).data(), in.size()) == 0,
              "a message that both ends copy");
    }
    other.join();
  });
}

// Whether it was in time is open, as all of it may have come before.
void killed_while_it_helps(runtime& rt) {
  try {
    rt.run([] {
      endpoint mine;
      remote_thread(on_node{last_node()}, call<send_all_in_one>(mine.id())).detach();
      const auto victim = mine.receive_value<pid_t>(any_endpoint, 1);
      std::string in = all_of_them(0);
      std::atomic<bool> over{false};
      thread kills([&] {
        const volatile char& last = in.back();
        while (last == 0 && !over) this_thread::yield();
        ::kill(victim, SIGKILL);
      });
      transfer receives = mine.start_receive(bytes_into(in), any_endpoint, 2);
      bool failed = false;
      try {
        receives.wait();
      } catch (const node_lost_error&) {
        failed = true;
      }
      over = true;
      kills.join();
      if (failed) {
        require_left_alone({&in});
      } else {
        require(in == all_of_them(1), "what has come whole");
      }
      std::puts("told");
      endpoint().receive_message();  // until the job is over
    });
  } catch (const std::exception&) {
  }
}

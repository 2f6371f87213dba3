// SPDX-License-Identifier: Apache-2.0
// What messages between threads cost. Alone, both threads are in one process; under
// `strata run -n 2 --workers 1` the other one is on node 1. The first argument says what:
//   latency BYTES N [handed]  half a round trip, N times; handed: vectors change hands
//   stream BYTES N [handed|made|in-place]
//                     one way, N messages, a window of 16 under way; bytes/s are BYTES / seconds.
//                     handed: a vector is made for each and handed over, and received as one; made:
//                     a vector is made for each, and copied; in-place: received where they arrive
//   busy BYTES N US   as latency, while a thread on each node computes, and yields every US us
//   beat N US         one way, a message every US us to a thread that waits; also the share of a
//                     core that the receiving process used
//   call N [plain | BYTES [back]]
//                     a call on node 1 (only on two nodes): an empty one, one with 64 plain bytes,
//                     or with a std::string of so many, which comes back or not (for which cereal
//                     has to be installed)
//   crowd M N         M threads on each node send N messages each at random; seconds for each
//                     message. All have arrived, once and in the order of each pair, or it fails
// Prints one JSON object with the median seconds of one.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/runtime.hpp>
#include <strata/semaphore.hpp>
#include <strata/thread.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if __has_include(<cereal/types/string.hpp>)
#include <cereal/types/string.hpp>
#include <strata/serialize.hpp>
#define STRATA_BENCH_OBJECTS 1
#endif

#include "bench/common/measure.hpp"

namespace {

using namespace strata;
using bench::median;
using bench::seconds_now;
using bench::spin_for;

constexpr message_tag hello = 1, ball = 2, done = 3, ready = 4, go = 5;

// One stroke of the game: the ball comes, or goes.
void take(endpoint& mine, endpoint_id from, std::vector<std::byte>& buffer, bool handed) {
  if (handed) {
    buffer = mine.receive_message(from, ball).content;
  } else {
    mine.receive(buffer, from, ball);
  }
}
void give(endpoint& mine, endpoint_id to, std::vector<std::byte>& buffer, bool handed) {
  if (handed) {
    mine.send(to, ball, std::move(buffer));
  } else {
    mine.send(to, ball, buffer);
  }
}

void play_back(endpoint_id to, std::size_t bytes, std::uint64_t rounds, bool handed) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, hello, mine.id());
  std::vector<std::byte> buffer(bytes);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    take(mine, to, buffer, handed);
    give(mine, to, buffer, handed);
  }
}

double latency(std::size_t bytes, std::uint64_t rounds, bool handed) {
  endpoint& mine = this_thread::endpoint();
  remote_thread other(on_node{static_cast<node_id_t>(num_nodes() - 1)},
                      call<play_back>(mine.id(), bytes, rounds, handed));
  const auto to = mine.receive_value<endpoint_id>(any_endpoint, hello);
  std::vector<std::byte> buffer(bytes);
  std::vector<double> times;
  const std::uint64_t each = std::max<std::uint64_t>(rounds / 200, 1);
  double began = seconds_now();
  // Counted down: a division for each round would be a part of what is measured.
  std::uint64_t left = each;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    give(mine, to, buffer, handed);
    take(mine, to, buffer, handed);
    if (--left == 0) {
      left = each;
      const double now = seconds_now();
      times.push_back((now - began) / static_cast<double>(each) / 2);
      began = now;
    }
  }
  other.join();
  return median(times);
}

std::atomic<bool> stop_computing{false};
std::atomic<unsigned> computing{0};

void compute(double piece) {
  stop_computing = false;
  computing.fetch_add(1);
  thread([piece] {
    while (!stop_computing.load(std::memory_order_relaxed)) {
      spin_for(piece);
      this_thread::yield();
    }
    computing.fetch_sub(1);
  }).detach();
}

void compute_no_more() {
  stop_computing = true;
  while (computing.load() != 0) this_thread::yield();
}

double busy_latency(std::size_t bytes, std::uint64_t rounds, double piece) {
  for (node_id_t n = 0; n < num_nodes(); ++n) call<compute>(on_node{n}, piece);
  const double seconds = latency(bytes, rounds, false);
  for (node_id_t n = 0; n < num_nodes(); ++n) call<compute_no_more>(on_node{n});
  return seconds;
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct heard {
  double delay, core;
};

// The clock is the same on all nodes of a host.
heard listen(endpoint_id from, std::uint64_t n) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(from, hello, mine.id());
  std::vector<double> delays;
  double began = 0, used = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto sent = mine.receive_value<double>(from, ball);
    delays.push_back(seconds_now() - sent);
    if (i == 0) began = seconds_now(), used = cpu_seconds();
  }
  return {median(delays), (cpu_seconds() - used) / (seconds_now() - began)};
}

void listen_and_tell(endpoint_id from, std::uint64_t n) {
  this_thread::endpoint().send_value(from, done, listen(from, n));
}

heard beat(std::uint64_t n, std::uint64_t every_us) {
  endpoint& mine = this_thread::endpoint();
  remote_thread other(on_node{static_cast<node_id_t>(num_nodes() - 1)},
                      call<listen_and_tell>(mine.id(), n));
  const auto to = mine.receive_value<endpoint_id>(any_endpoint, hello);
  for (std::uint64_t i = 0; i < n; ++i) {
    this_thread::sleep_for(std::chrono::microseconds(every_us));
    mine.send_value(to, ball, seconds_now());
  }
  const auto h = mine.receive_value<heard>(to, done);
  other.join();
  return h;
}

constexpr std::size_t window = 16;

void take_in(endpoint_id from, std::size_t bytes, std::uint64_t n) {
  endpoint& mine = this_thread::endpoint();
  std::vector<std::byte> buffer(bytes);
  mine.send_value(from, hello, mine.id());
  for (std::uint64_t i = 0; i < n; ++i) mine.receive(buffer, from, ball);
  mine.send_value(from, done, 0);
}

void take_in_place(endpoint_id from, std::uint64_t n) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(from, hello, mine.id());
  std::size_t bytes = 0;
  const auto look = [&](const message_info& m, std::span<const std::byte>) { bytes += m.bytes; };
  for (std::uint64_t i = 0; i < n; ++i) mine.receive_in_place(look, from, ball);
  mine.send_value(from, done, bytes == 0 ? 0 : 1);
}

void take_in_handed(endpoint_id from, std::uint64_t n) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(from, hello, mine.id());
  for (std::uint64_t i = 0; i < n; ++i) (void)mine.receive_message(from, ball);
  mine.send_value(from, done, 0);
}

double stream(std::size_t bytes, std::uint64_t n, std::string_view how) {
  const bool handed = how == "handed", made = how == "made", in_place = how == "in-place";
  endpoint& mine = this_thread::endpoint();
  // One on each side, as in the programs of the others: as many as are under way would leave the
  // caches.
  const std::vector<std::byte> buffer(bytes, std::byte{1});
  std::vector<double> times;
  for (int repetition = 0; repetition < 7; ++repetition) {
    const on_node there{static_cast<node_id_t>(num_nodes() - 1)};
    remote_thread other = handed     ? remote_thread(there, call<take_in_handed>(mine.id(), n))
                          : in_place ? remote_thread(there, call<take_in_place>(mine.id(), n))
                                     : remote_thread(there, call<take_in>(mine.id(), bytes, n));
    const auto to = mine.receive_value<endpoint_id>(any_endpoint, hello);
    std::array<transfer, window> sends;
    const double began = seconds_now();
    for (std::uint64_t i = 0; i < n; ++i) {
      if (handed || made) {
        std::vector<std::byte> one(bytes, std::byte{1});
        if (handed)
          mine.send(to, ball, std::move(one));
        else
          mine.send(to, ball, one);
        continue;
      }
      if (i >= window) sends[i % window].wait();
      sends[i % window] = mine.start_send(to, ball, buffer);
    }
    (void)mine.receive_value<int>(to, done);
    times.push_back((seconds_now() - began) / static_cast<double>(n));
    wait_all(sends);
    other.join();
  }
  return median(times);
}

void nothing() {}

template <class Call>
double calls(std::uint64_t n, const Call& make) {
  std::vector<double> times;
  const std::uint64_t each = std::max<std::uint64_t>(n / 200, 1);
  for (std::uint64_t i = 0; i < n; i += each) {
    const double began = seconds_now();
    for (std::uint64_t k = 0; k < each; ++k) make();
    times.push_back((seconds_now() - began) / static_cast<double>(each));
  }
  return median(times);
}

using plain_bytes = std::array<char, 64>;
std::uint64_t take_plain(const plain_bytes& bytes) { return bytes.size(); }
#if defined(STRATA_BENCH_OBJECTS)
std::uint64_t take_text(const std::string& text) { return text.size(); }
std::string return_text(const std::string& text) { return text; }
#endif

// argument: nothing, "plain", or how many bytes.
double calls(std::uint64_t n, std::string_view argument, [[maybe_unused]] std::string_view back) {
  const on_node there{static_cast<node_id_t>(num_nodes() - 1)};
  if (argument.empty()) return calls(n, [&] { call<nothing>(there); });
  if (argument == "plain") return calls(n, [&] { (void)call<take_plain>(there, plain_bytes{}); });
#if defined(STRATA_BENCH_OBJECTS)
  const std::string text(std::strtoull(argument.data(), nullptr, 10), 't');
  if (back == "back") return calls(n, [&] { (void)call<return_text>(there, text); });
  return calls(n, [&] { (void)call<take_text>(there, text); });
#else
  return -1;
#endif
}

// What a receiver writes down for each message: whose it was, and the how manyth of that sender.
struct noted {
  endpoint_id source;
  std::uint64_t number;
};

// Those of one sender came in the order in which it sent them, each once.
bool are_in_order(std::vector<noted> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const noted& a, const noted& b) { return a.source < b.source; });
  return std::adjacent_find(all.begin(), all.end(), [](const noted& a, const noted& b) {
           return a.source == b.source && a.number >= b.number;
         }) == all.end();
}

// Sends n messages at random, once it is told to, and receives until it has been told that all
// have. Then it looks at their order.
void talk(endpoint_id book, std::uint64_t me, std::uint64_t n) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(book, hello, mine.id());
  const message names = mine.receive_message(book, hello);
  const auto* const all = reinterpret_cast<const endpoint_id*>(names.content.data());
  const std::size_t count = names.content.size() / sizeof(endpoint_id);
  binary_semaphore told(0);
  std::vector<noted> received;
  received.reserve(2 * n);
  thread receives([&mine, &told, &received, book] {
    std::array<std::byte, 64> buffer;
    for (;;) {
      const message_info m = mine.receive(buffer);
      if (m.source != book) {
        std::uint64_t number = 0;
        std::memcpy(&number, buffer.data(), sizeof(number));
        received.push_back({m.source, number});
      } else if (m.tag == go) {
        told.release();
      } else if (m.tag == done) {
        break;
      } else {
        mine.send_value(book, ball, std::uint64_t{received.size()});
      }
    }
  });
  mine.send_value(book, ready, 0);
  told.acquire();
  std::uint64_t random = me * 2 + 1;
  for (std::uint64_t i = 0; i < n; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    mine.send_value(all[(random >> 33) % count], static_cast<message_tag>(random >> 40), i);
  }
  mine.send_value(book, done, n);
  receives.join();
  if (!are_in_order(std::move(received))) throw error("messages out of order, or twice");
}

double crowd(std::uint64_t threads, std::uint64_t n) {
  endpoint& book = this_thread::endpoint();
  const std::uint64_t count = threads * num_nodes();
  std::vector<remote_thread> running;
  for (std::uint64_t i = 0; i < count; ++i)
    running.emplace_back(on_node{static_cast<node_id_t>(i % num_nodes())},
                         call<talk>(book.id(), i, n));
  std::vector<endpoint_id> all;
  for (std::uint64_t i = 0; i < count; ++i)
    all.push_back(book.receive_value<endpoint_id>(any_endpoint, hello));
  for (const endpoint_id e : all) book.send(e, hello, bytes_of(all));
  for (std::uint64_t i = 0; i < count; ++i) (void)book.receive_value<int>(any_endpoint, ready);
  const double began = seconds_now();
  for (const endpoint_id e : all) book.send_value(e, go, 0);
  for (std::uint64_t i = 0; i < count; ++i)
    (void)book.receive_value<std::uint64_t>(any_endpoint, done);
  // All are sent; how many have arrived?
  std::uint64_t received = 0;
  while (received != count * n) {
    received = 0;
    for (const endpoint_id e : all) book.send_value(e, hello, 0);
    for (std::uint64_t i = 0; i < count; ++i)
      received += book.receive_value<std::uint64_t>(any_endpoint, ball);
  }
  const double seconds = seconds_now() - began;
  for (const endpoint_id e : all) book.send_value(e, done, 0);
  for (remote_thread& t : running) t.join();
  return seconds / static_cast<double>(count * n);
}

}  // namespace

int main(int argc, char** argv) {
  runtime rt(options::parse(argc, argv));
  const auto number = [&](int i) -> std::uint64_t {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : 1;
  };
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view how = argc > 4 ? argv[4] : "";
  const bool handed = how == "handed";
  double core = -1;
  const double seconds = rt.run([&] {
    if (what == "latency") return latency(number(2), number(3), handed);
    if (what == "busy")
      return busy_latency(number(2), number(3), 1e-6 * static_cast<double>(number(4)));
    if (what == "beat") {
      const heard h = beat(number(2), number(3));
      core = h.core;
      return h.delay;
    }
    if (what == "stream") return stream(number(2), number(3), how);
    if (what == "call") return calls(number(2), argc > 3 ? argv[3] : "", argc > 4 ? argv[4] : "");
    if (what == "crowd") return crowd(number(2), number(3));
    return -1.0;
  });
  if (seconds < 0) {
    std::fputs(
        "usage: endpoints latency BYTES N [handed] | stream BYTES N [handed|made|in-place] "
        "| busy BYTES N US | beat N US | call N [plain | BYTES [back]] | crowd M N\n",
        stderr);
    return 2;
  }
  if (core >= 0) {
    std::printf("{\"impl\": \"strata\", \"seconds\": %.9g, \"core\": %.4g, \"ok\": true}\n",
                seconds, core);
    return 0;
  }
  std::printf("{\"impl\": \"strata\", \"seconds\": %.9g, \"ok\": true}\n", seconds);
}

// SPDX-License-Identifier: Apache-2.0
// A job whose connections end while its nodes live; its last argument says what it does. Node 0
// prints what the test waits for, and "ok" when all was as it should be.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/route.hpp"
#include "strata/runtime.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"
#include "tests/common/count_to_node.hpp"
#include "tests/common/require.hpp"
#include "tests/common/say.hpp"
#include "tests/common/slow_builds.hpp"

namespace {

using namespace strata;
using test::require;
using test::say;

// As a broken network ends them: with what they hold. Those of this process to addresses that begin
// so. Returns how many.
int reset_connections(std::string_view to) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), &::closedir);
  int count = 0;
  while (const dirent* const entry = ::readdir(all.get())) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0 ||
        peer.sin_family != AF_INET)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text);
    if (!std::string_view(text).starts_with(to)) continue;
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    // Past what ThreadSanitizer looks at: to it a second thread at the descriptor is a mistake, and
    // here that is what happens.
    require(::syscall(SYS_connect, fd, &nobody, sizeof nobody) == 0, "resets a connection");
    ++count;
  }
  return count;
}

// Bytes that say where they belong, to node 2 and back.
std::vector<std::uint64_t> pattern(int round) {
  std::vector<std::uint64_t> all(100'000);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = i * 0x9E37'79B9'7F4A'7C15U + static_cast<std::uint64_t>(round);
  return all;
}

template <class F>
void send_bulk_to_node_2(F enough) {
  endpoint mine;
  remote_thread other(
      on_node{2},
      [](endpoint_id home) {
        endpoint here;
        here.send_value(home, 1, here.id());
        std::vector<std::uint64_t> all(pattern(0).size());
        for (;;) {
          const std::size_t bytes =
              here.receive(std::as_writable_bytes(std::span(all)), home, 2).bytes;
          here.send(home, 3, std::as_bytes(std::span(all)).first(bytes));
          if (bytes == 0) return;
        }
      },
      mine.id());
  const auto theirs = mine.receive_value<endpoint_id>(any_endpoint, 1);
  std::vector<std::uint64_t> back(pattern(0).size());
  for (int round = 0; !enough() || round < 10; ++round) {
    const std::vector<std::uint64_t> there = pattern(round);
    mine.send(theirs, 2, std::as_bytes(std::span(there)));
    (void)mine.receive(std::as_writable_bytes(std::span(back)), theirs, 3);
    require(back == there, "as it was sent");
  }
  mine.send(theirs, 2, std::span<const std::byte>{});
  (void)mine.receive(std::as_writable_bytes(std::span(back)), theirs, 3);
  other.join();
}

// Everything that nodes 0 and 2 say to each other while `happens` in the middle of it, until that
// is over; and a while longer.
template <class F, class G>
void talk_while(F happens, G is_over) {
  std::atomic<unsigned> so_far{0};
  const auto enough = [&] { return so_far > 500 && is_over(so_far); };
  thread bulk([&] { send_bulk_to_node_2(enough); });
  test::count_to_node_2([&] {
    if (++so_far == 500) happens();
    return enough();
  });
  bulk.join();
  test::count_to_node_2([] { return true; });
}

// In a circle of three: the neighbour to whom goes what is for node 2, and the cable there. Noise
// decides, when the job begins.
std::atomic<node_id_t> first_next{0};
std::string direction_cable() {
  first_next = route_to(2).next;
  return first_next == 2 ? "4" : "1";
}
// Other ways lead around what has ended.
bool is_around(unsigned) { return route_to(2).next != first_next; }
// What comes now has been sent long after it has ended.
bool goes_on(unsigned so_far) {
  constexpr unsigned long_after = test::scaled(20'000U, 5'000U);
  return so_far > long_after;
}

template <class F>
void talk_over(runtime& rt, F happens, bool (*is_over)(unsigned)) {
  rt.run([&] {
    talk_while(happens, is_over);
    say("goes on");
  });
}

// Which of its two networks carries what node 0 sends to node 2.
std::uint64_t bytes_sent_by(const std::string& interface) {
  std::ifstream counter("/sys/class/net/" + interface + "/statistics/tx_bytes");
  std::uint64_t bytes = 0;
  require(static_cast<bool>(counter >> bytes), "counts bytes");
  return bytes;
}

void uses_the_better_one(runtime& rt) {
  const std::uint64_t before = bytes_sent_by("cable4");
  rt.run([] {
    require(route_to(2).hops == 1, "the way there");
    send_bulk_to_node_2([] { return true; });
  });
  require(bytes_sent_by("cable4") - before < 1'000'000, "little by the slow one");
  require(bytes_sent_by("cable6") > 8'000'000, "all by the other one");
  say("goes on");
}

// Two equal cables: noise decides which one is used. 4 or 6.
std::string used_cable() {
  const std::uint64_t by_4 = bytes_sent_by("cable4"), by_6 = bytes_sent_by("cable6");
  send_bulk_to_node_2([] { return true; });
  return bytes_sent_by("cable4") - by_4 > bytes_sent_by("cable6") - by_6 ? "4" : "6";
}

void reset_by(const std::string& cable) {
  require(reset_connections("192.168." + cable + ".") == 1, "one connection");
}
void say_cable(const std::string& cable) { say(("talks by cable" + cable).c_str()); }

// Large messages to this node whose transfer has ended in the middle, so that they came in pieces:
// copied, though they were not asked for in pieces. What else is copied is small.
std::uint64_t ended_transfers(const runtime& rt) {
  const message_statistics m = rt.stats().messages;
  if (m.moved == 0) return 0;
  const std::uint64_t each = pattern(0).size() * sizeof(std::uint64_t);
  return m.bytes_copied / each - m.pulled;
}

// Until one has ended in the middle, however long it takes to cut the cable.
void end_transfers(runtime& rt) {
  rt.run([&] {
    talk_while([] { say_cable(used_cable()); },
               [&](unsigned so_far) { return so_far % 64 == 0 && ended_transfers(rt) > 0; });
    say("goes on");
  });
}

struct ender : threaded {
  int signal_number;
  void start() { ::kill(::getpid(), signal_number); }
};

int same(int i) { return i; }

// Node 2, by this signal, while it is called.
void end_node_2(runtime& rt, int signal_number) {
  try {
    rt.run([&] {
      for (int i = 0;; ++i) {
        if (i == 500) invoke<ender>(2, signal_number);
        require(call<same>(on_node{2}, i) == i, "answers");
      }
    });
  } catch (const node_lost_error& e) {
    require(e.node() == 2, "names the node");
    throw;
  }
}

// For most of the time after which it would be lost.
struct sleeper : threaded {
  void start() {
    const std::string me = std::to_string(::getpid());
    require(std::system(("(sleep 4; kill -CONT " + me + ") &").c_str()) == 0, "will wake up");
    ::kill(::getpid(), SIGSTOP);
  }
};

void stop_node_2_for_a_while(runtime& rt) {
  rt.run([] {
    for (int i = 0; i < 2000; ++i) {
      if (i == 500) invoke<sleeper>(2);
      require(call<same>(on_node{2}, i) == i, "answers");
    }
  });
  say("goes on");
}

}  // namespace

int main(int argc, char** argv) try {
  runtime rt(options::parse(argc, argv));
  const std::string_view what = argc > 1 ? argv[argc - 1] : "";
  if (what == "resets")
    talk_over(
        rt, [] { reset_by(direction_cable()); }, &is_around);
  else if (what == "falls-silent")
    talk_over(
        rt, [] { say_cable(direction_cable()); }, &is_around);
  else if (what == "talks")
    talk_over(
        rt, [] {}, &goes_on);
  else if (what == "resets-one")
    talk_over(
        rt, [] { reset_by(used_cable()); }, &goes_on);
  else if (what == "uses-the-better-one")
    uses_the_better_one(rt);
  else if (what == "one-falls-silent")
    talk_over(
        rt, [] { say_cable(used_cable()); }, &goes_on);
  else if (what == "ends-transfers")
    end_transfers(rt);
  else if (what == "stop-for-a-while")
    stop_node_2_for_a_while(rt);
  else if (what == "kill")
    end_node_2(rt, SIGKILL);
  else if (what == "stop")
    end_node_2(rt, SIGSTOP);
  else
    throw std::logic_error("what?");
  say("ok");
  return 0;
} catch (const std::exception& e) {
  std::printf("not ok: %s\n", e.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
// A job whose connections end while its nodes live; its last argument says what it does. Node 0
// prints what the test waits for, and "ok" when all was as it should be.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rounds.hpp"
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
#include "tests/common/stand_still.hpp"

namespace {

using namespace strata;
using test::require;
using test::say;

// Those of this process to addresses that begin so.
template <class F>
void for_each_connection(std::string_view to, F f) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), &::closedir);
  while (const dirent* const entry = ::readdir(all.get())) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0 ||
        peer.sin_family != AF_INET)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text);
    if (std::string_view(text).starts_with(to)) f(fd);
  }
}

// As a broken network ends them: with what they hold. Returns how many.
int reset_connections(std::string_view to) {
  int count = 0;
  for_each_connection(to, [&](int fd) {
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    // Past what ThreadSanitizer looks at: to it a second thread at the descriptor is a mistake, and
    // here that is what happens.
    require(::syscall(SYS_connect, fd, &nobody, sizeof nobody) == 0, "resets a connection");
    ++count;
  });
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
  test::talk_to_node_2(
      [](endpoint& here, endpoint_id home) {
        std::vector<std::uint64_t> all(pattern(0).size());
        for (;;) {
          const std::size_t bytes =
              here.receive(std::as_writable_bytes(std::span(all)), home, 2).bytes;
          here.send(home, 3, std::as_bytes(std::span(all)).first(bytes));
          if (bytes == 0) return;
        }
      },
      [&](endpoint& mine, endpoint_id theirs) {
        std::vector<std::uint64_t> back(pattern(0).size());
        for (int round = 0; !enough() || round < 10; ++round) {
          const std::vector<std::uint64_t> there = pattern(round);
          mine.send(theirs, 2, std::as_bytes(std::span(there)));
          (void)mine.receive(std::as_writable_bytes(std::span(back)), theirs, 3);
          require(back == there, "as it was sent");
        }
        mine.send(theirs, 2, std::span<const std::byte>{});
        (void)mine.receive(std::as_writable_bytes(std::span(back)), theirs, 3);
      });
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

int same(int i) { return i; }

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

// Connections of this process to addresses that begin so, and stand.
int count_connections(std::string_view to) {
  int count = 0;
  for_each_connection(to, [&](int fd) {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
        info.tcpi_state == TCP_ESTABLISHED)
      ++count;
  });
  return count;
}

// Between two bursts, where it takes seconds until a cable is known to be cut, or is used again.
// What is said in the first burst after a cut goes into the dead cable, too.
void lull() { this_thread::sleep_for(std::chrono::milliseconds(10)); }

void count_in_bursts(const std::atomic<bool>& is_over) {
  test::count_to_node_2([&, counted = 0U]() mutable {
    constexpr unsigned burst = 64;
    if (++counted % burst == 0) lull();
    return is_over.load();
  });
}

// The cable in use is cut and mended by the test, again and again; and each time the other one is
// all that the two nodes have. look(): what is known of that one while nothing goes by it;
// is_back(): that shows that there is a connection again.
template <class Look, class IsBack>
void talk_over_cables_that_return(runtime& rt, Look look, IsBack is_back) {
  rt.run([&] {
    std::atomic<bool> is_over{false};
    thread counting([&] { count_in_bursts(is_over); });
    std::string cable = used_cable();
    for (int round = 0; round < detours_test::rounds_of_cables; ++round) {
      const std::string now = " round " + std::to_string(round);
      say(("cable" + cable + " carries" + now).c_str());
      const std::string other = std::exchange(cable, cable == "4" ? "6" : "4");
      while (used_cable() != cable) {
      }
      const auto before = look(other);
      say(("the other one carries" + now).c_str());
      for (unsigned looks = 0; !is_back(other, before); lull()) {
        constexpr unsigned between_bulks = 10;
        if (looks++ % between_bulks == 0) (void)used_cable();
      }
      (void)used_cable();
      say(("both are there in" + now).c_str());
    }
    is_over = true;
    counting.join();
    say("goes on");
  });
}

// That of the handshake counts, too, which is over when so much more has been said.
bool is_connected_over(const std::string& cable) {
  return count_connections("192.168." + cable + ".") != 0;
}
void talk_over_sockets_that_return(runtime& rt) {
  talk_over_cables_that_return(
      rt, [](const std::string&) { return 0; },
      [](const std::string& cable, int) { return is_connected_over(cable); });
}

// What has come by UDP, over which this node has no other neighbour.
std::uint64_t messages_by_udp(const runtime& rt) {
  std::uint64_t count = 0;
  for (const transport_statistics& t : rt.stats().transports) {
    if (t.name == "udp") count += t.messages_in;
  }
  return count;
}
// The first by UDP, the other one by TCP. UDP has no connections to count, but by the one that is
// not in use something is said every few seconds.
void talk_over_kinds_that_return(runtime& rt) {
  talk_over_cables_that_return(
      rt, [&](const std::string&) { return messages_by_udp(rt); },
      [&](const std::string& cable, std::uint64_t before) {
        return cable == "4" ? messages_by_udp(rt) != before : is_connected_over(cable);
      });
}

// In a circle of three: what goes by the one of this node's cables that is cut first goes around;
// and when that has been put back, what went by the other one.
void talk_while_ways_return(runtime& rt) {
  rt.run([] {
    std::atomic<bool> is_over{false};
    thread counting([&] { count_in_bursts(is_over); });
    const auto wait_until = [](auto is_so) {
      constexpr int burst = 16;
      for (; !is_so(); lull()) {
        for (int i = 0; i < burst; ++i) require(call<same>(on_node{1}, i) == i, "answers");
      }
    };
    const std::string first = direction_cable();
    const node_id_t there = first_next, other_one = there == 2 ? 1 : 2;
    say(("cable" + first + " carries round 0").c_str());
    wait_until([&] { return route_to(there).hops == 2; });
    say("the other one carries round 0");
    wait_until([&] { return route_to(there).hops == 1; });
    say("both are there in round 0");
    wait_until([&] { return route_to(other_one).hops == 2; });
    is_over = true;
    counting.join();
    say("goes on");
  });
}

void reset_by(const std::string& cable) {
  require(reset_connections("192.168." + cable + ".") == 1, "one connection");
}

// In a circle of three. A connection that was reset is made again after a second, in which a
// machine that has much to do may have sent little: then it is reset once more.
void talk_around_resets(runtime& rt) {
  // Bytes: a part of one large message, and more than nodes say anyway.
  constexpr std::uint64_t much = 100'000;
  std::mutex looking;
  std::string cable, other;
  std::uint64_t before = 0;
  const auto reset = [&] {
    const std::lock_guard lock(looking);
    cable = direction_cable();
    other = cable == "4" ? "cable1" : "cable4";
    before = bytes_sent_by(other);
    reset_by(cable);
  };
  const auto is_gone_around = [&](unsigned) {
    const std::lock_guard lock(looking);
    if (bytes_sent_by(other) - before > much) return true;
    if (is_connected_over(cable)) reset_by(cable);
    return false;
  };
  rt.run([&] {
    talk_while(reset, is_gone_around);
    say("goes on");
  });
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

// For a third of the time after which it would be lost.
struct sleeper : threaded {
  void start() { test::stand_still(4); }
};

void stop_node_2_for_a_while(runtime& rt) {
  rt.run([] {
    const route before = route_to(2);
    const auto is_as_before = [&] {
      const route now = route_to(2);
      require(now.hops == before.hops && now.next == before.next, "the way there stays as it was");
    };
    for (int i = 0; i < 2000; ++i) {
      if (i == 500) invoke<sleeper>(2);
      require(call<same>(on_node{2}, i) == i, "answers");
      is_as_before();
    }
  });
  say("goes on");
}

}  // namespace

int main(int argc, char** argv) try {
  runtime rt(options::parse(argc, argv));
  const std::string_view what = argc > 1 ? argv[argc - 1] : "";
  if (what == "resets")
    talk_around_resets(rt);
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
  else if (what == "cables-return")
    talk_over_sockets_that_return(rt);
  else if (what == "kinds-return")
    talk_over_kinds_that_return(rt);
  else if (what == "ways-return")
    talk_while_ways_return(rt);
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

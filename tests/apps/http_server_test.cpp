// SPDX-License-Identifier: Apache-2.0
// The server of mapview's page against rude clients, with limits that do not take minutes.
#include "apps/mapview/http_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <strata/semaphore.hpp>
#include <strata/thread.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/slow_builds.hpp"
#include "http_client.hpp"

namespace {

using namespace mapview;
using namespace std::chrono_literals;
using apps_test::connection;
using apps_test::get;
using apps_test::reply;

http_answer echo(const http_request& r) {
  std::string text = r.method + " " + r.path;
  for (const auto& [name, value] : r.parameters) text += " " + name + "=" + value;
  return {.body = text};
}

// A server within a runtime of its own, while it lives.
class serving {
 public:
  explicit serving(const http_limits& limits = {}, const http_handler& handler = &echo)
      : server_(0, handler, limits), thread_([this] { rt_.run([this] { server_.serve(); }); }) {}
  ~serving() { end(); }
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;
  void end() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  std::uint16_t port() const { return server_.port(); }

 private:
  strata::runtime rt_;
  http_server server_;
  std::thread thread_;
};

const std::string plain = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(http_server, answers_several_requests_of_a_connection) {
  const serving s;
  connection c(s.port());
  c.send("GET /a%20b?x=1&y=%32 HTTP/1.1\r\nHost: h\r\n\r\n" + plain);  // both at once
  EXPECT_EQ(c.receive().body, "GET /a b x=1 y=2");
  EXPECT_EQ(c.receive().body, "GET /a");
  c.send("HEAD /c HTTP/1.1\r\nHost: h\r\n\r\n");
  const reply head = c.receive(true);
  EXPECT_EQ(head.header("Content-Length"), "7");
  c.send(plain.substr(0, 10));
  c.send(plain.substr(10));
  EXPECT_EQ(c.receive().body, "GET /a");
  c.send("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(c.receive().body, "GET /b");
  EXPECT_EQ(c.rest(), "");
}

TEST(http_server, ends_a_connection_after_so_many_requests) {
  http_limits limits;
  limits.requests = 2;
  const serving s(limits);
  connection c(s.port());
  c.send(plain);
  EXPECT_EQ(c.receive().header("Connection"), "");
  c.send(plain);
  EXPECT_EQ(c.receive().header("Connection"), "close");
  EXPECT_EQ(c.rest(), "");
}

// The answer says so, too: a client must not wait for what will not come.
TEST(http_server, ends_a_connection_when_the_client_asks_for_it) {
  const serving s;
  for (const std::string head :
       {"HTTP/1.1\r\nConnection: close", "HTTP/1.1\r\nconnection: Close",
        "HTTP/1.1\r\nConnection: TE, close", "HTTP/1.1\r\nConnection:\tCLOSE ,, x",
        "HTTP/1.1\r\nConnection: keep-alive\r\nConnection: close", "HTTP/1.0",
        "HTTP/1.0\r\nConnection: keep-alive", "HTTP/1.0\r\nConnection: Keep-Alive"}) {
    connection c(s.port());
    c.send("GET /a " + head + "\r\n\r\n" + plain);
    const reply r = c.receive();
    EXPECT_EQ(r.body, "GET /a") << head;
    EXPECT_EQ(r.header("Connection"), "close") << head;
    EXPECT_EQ(r.header("Keep-Alive"), "") << head;
    EXPECT_EQ(c.rest(), "") << head;
  }
  connection c(s.port());
  for (const std::string list : {"keep-alive", "closer", "not close", "", ","}) {
    c.send("GET /a HTTP/1.1\r\nConnection: " + list + "\r\n\r\n");
    EXPECT_EQ(c.receive().header("Connection"), "") << list;
  }
}

TEST(http_server, passes_over_an_empty_line_before_a_request) {
  const serving s;
  connection c(s.port());
  c.send("\r\n" + plain + "\r\n" + plain);
  EXPECT_EQ(c.receive().body, "GET /a");
  EXPECT_EQ(c.receive().body, "GET /a");
  c.send("\r");
  c.send("\n" + plain);
  EXPECT_EQ(c.receive().body, "GET /a");
}

TEST(http_server, refuses_what_is_no_request) {
  const serving s;
  const std::string nul("GET /\0 HTTP/1.1\r\n\r\n", 19);
  const std::pair<int, std::string> rude[] = {
      {414, "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n"},
      {414, "GET /" + std::string(1'000'000, 'a')},
      {431, "GET / HTTP/1.1\r\nX: " + std::string(5000, 'a') + "\r\n\r\n"},
      {400, nul},
      {400, "\r\n\r\n"},
      {400, "\r\n\r\n" + plain},
      {400, "GET\r\n\r\n"},
      {400, "GET / HTTP/9.9\r\n\r\n"},
      {400, "BREW /pot HTTP/1.1\r\n\r\n"},
      {400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {400, "Range: bytes=0-0\r\n" + plain},
      {400, "\x16\x03\x01 hello, TLS\r\n\r\n"},
  };
  for (const auto& [status, bytes] : rude) {
    connection c(s.port());
    c.send(bytes);
    const reply r = c.receive();
    EXPECT_EQ(r.status, status) << bytes.substr(0, 40);
    EXPECT_EQ(r.body.find('\n'), r.body.size() - 1) << r.body;
    EXPECT_EQ(r.header("Connection"), "close") << r.head;
    EXPECT_EQ(r.header("Keep-Alive"), "") << r.head;
    EXPECT_EQ(c.rest(), "") << bytes.substr(0, 40);
  }
  connection many(s.port());
  std::string head = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) head += "X-" + std::to_string(i) + ": 1\r\n";
  many.send(head);
  EXPECT_EQ(many.receive().status, 431);
}

// A Range that makes no sense counts for nothing, and the handler is asked all the same.
TEST(http_server, answers_with_the_whole_whatever_part_is_wanted) {
  const serving s;
  connection c(s.port());
  for (const std::string range :
       {"bytes=0-1", "bytes=5-1", "bytes=0-0,", "bytes=-,-,-", "bytes=99999999999999999999-",
        "bytes=-99999999999999999999", "items=0-1", "nonsense", ""}) {
    for (const std::string name : {"Range:", "range: ", "X: y\nRANGE:\t"}) {
      c.send("GET /a HTTP/1.1\r\nHost: h\r\n" + name + range + "\r\n\r\n");
      const reply r = c.receive();
      EXPECT_EQ(r.status, 200) << name << range;
      EXPECT_EQ(r.body, "GET /a") << name << range;
    }
  }
}

// Matched with std::regex, which recurses for each character, this would overflow a stack.
TEST(http_server, survives_the_longest_list_of_ranges) {
  const serving s;
  std::string ranges = "bytes=0-0";
  while (ranges.size() + 20 < http_limits{}.line_bytes) ranges += ",0-0";
  connection c(s.port());
  c.send("GET / HTTP/1.1\r\nRange: " + ranges + "\r\n\r\n" + plain);
  EXPECT_EQ(c.receive().status, 200);
  EXPECT_EQ(c.receive().status, 200);
}

// Otherwise a body could pass for another request.
TEST(http_server, reads_no_bodies) {
  const serving s;
  for (const std::string method : {"GET", "POST"}) {
    connection c(s.port());
    c.send(method + " /a HTTP/1.1\r\nContent-Length: " + std::to_string(plain.size()) + "\r\n\r\n" +
           plain);
    const reply r = c.receive();
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("Connection"), "close");
    EXPECT_EQ(c.rest(), "");
  }
}

TEST(http_server, does_not_wait_for_slow_clients) {
  http_limits short_idle, short_head;
  short_idle.idle = 100ms;
  short_head.head = 100ms;
  {
    const serving s(short_idle);
    connection silent(s.port());
    EXPECT_EQ(silent.rest(), "");
  }
  const serving s(short_head);
  connection half(s.port());
  half.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(half.receive().status, 408);
  // A byte at a time is no progress.
  connection drops(s.port());
  reply late;
  std::atomic<bool> answered{false};
  std::thread listening([&] {
    late = drops.receive();
    answered = true;
  });
  for (drops.send("GET /"); !answered; drops.send("a"))
    std::this_thread::sleep_for(2ms);  // this client's pace: it has time for 50 letters
  listening.join();
  EXPECT_EQ(late.status, 408);
}

TEST(http_server, gives_up_on_who_does_not_read) {
  http_limits limits;
  limits.answer = 100ms;
  const serving s(limits, [](const http_request&) {
    return http_answer{.body = std::string(std::size_t{64} << 20, 'x')};
  });
  connection c(s.port());
  c.send(plain + plain);
  // The server ends although nobody has read anything.
}

TEST(http_server, takes_so_many_connections_and_no_more) {
  http_limits limits;
  limits.connections = 3;
  const serving s(limits);
  {
    connection a(s.port()), b(s.port()), c(s.port());
    for (connection* one : {&a, &b, &c}) {
      one->send(plain);
      EXPECT_EQ(one->receive().status, 200);
    }
    EXPECT_EQ(get(s.port(), "/").status, 503);
  }
  // Their places become free, some time.
  while (get(s.port(), "/").status != 200) {
  }
}

// It has sent what the server will not read.
TEST(http_server, ends_in_order_with_one_that_is_too_many) {
  http_limits limits;
  limits.connections = 1;
  http_server server(0, &echo, limits);
  connection first(server.port()), second(server.port());
  first.send(plain);
  second.send(plain);
  strata::runtime rt;
  std::thread serving([&] { rt.run([&] { server.serve(); }); });
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(second.receive().status, 503);
  EXPECT_EQ(second.rest(), "");
  EXPECT_FALSE(second.was_reset());
  server.stop();
  serving.join();
}

TEST(http_server, turns_away_whom_it_has_no_thread_for) {
  if (strata::test::address_sanitizer) GTEST_SKIP() << "it writes an eighth of each stack";
  constexpr std::size_t large = std::size_t{1} << 30;  // few fit into the address space
  strata::runtime rt;
  http_server server(0, &echo, {.stack_bytes = large});
  strata::counting_semaphore<> may_go(0);
  std::atomic<bool> is_full{false};
  std::thread serving([&] {
    rt.run([&] {
      std::vector<strata::thread> crowd;
      try {
        for (;;)
          crowd.emplace_back(strata::thread_attributes{.stack_bytes = large},
                             [&] { may_go.acquire(); });
      } catch (const std::system_error&) {
      }
      is_full = true;
      server.serve();
      for (strata::thread& t : crowd) t.join();
    });
  });
  while (!is_full) std::this_thread::yield();
  EXPECT_EQ(get(server.port(), "/").status, 503);
  may_go.release(1 << 20);
  while (get(server.port(), "/").status != 200) {
  }
  server.stop();
  serving.join();
}

TEST(http_server, tells_who_has_gone) {
  std::atomic<bool> asked{false}, gone{false};
  const serving s({}, [&](const http_request& r) {
    asked = true;
    while (r.is_awaited()) std::this_thread::yield();
    gone = true;
    return http_answer{};
  });
  {
    connection c(s.port());
    c.send(plain);
    while (!asked) std::this_thread::yield();
    EXPECT_FALSE(gone);
  }
  while (!gone) std::this_thread::yield();
}

TEST(http_server, stops_with_connections_open) {
  serving s;
  connection idle(s.port()), half(s.port());
  half.send("GET / HT");
  connection used(s.port());
  used.send(plain);
  EXPECT_EQ(used.receive().status, 200);
  s.end();
  EXPECT_EQ(idle.rest() + half.rest() + used.rest(), "");
  EXPECT_THROW(connection again(s.port()), std::runtime_error);
}

TEST(http_server, says_that_a_port_is_taken) {
  const serving s;
  try {
    const http_server other(s.port(), &echo);
    FAIL();
  } catch (const strata::user_error& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(s.port())), std::string::npos) << e.what();
  }
}

}  // namespace

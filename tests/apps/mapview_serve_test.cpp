// SPDX-License-Identifier: Apache-2.0
// mapview serve from outside.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/run_in_time.hpp"
#include "../common/slow_builds.hpp"
#include "apps/mapview/map.hpp"
#include "apps/mapview/stop_signals.hpp"
#include "http_client.hpp"
#include "mapview_fixture.hpp"
#include "running_program.hpp"

namespace {

using namespace mapview;
using apps_test::get;
using apps_test::outcome;
using apps_test::reply;
using apps_test::run_line;
using apps_test::running;
using strata::test::run_in_time;

class served_maps : public apps_test::maps {
 protected:
  // Of the line that the server prints.
  static std::uint16_t port_of(running& server) {
    const std::string line = server.line();
    const std::string begin = "http://127.0.0.1:";
    EXPECT_EQ(line.substr(0, begin.size()), begin) << server.end().err;
    EXPECT_EQ(line.back(), '/');
    return static_cast<std::uint16_t>(std::stoi(line.substr(begin.size())));
  }
  static void expect_quiet(const outcome& o) {
    EXPECT_EQ(o.exit_code, 0);
    EXPECT_EQ(o.err, "");
    EXPECT_EQ(o.out, "");
  }
  static outcome end_by(int signal, running& server) {
    server.signal(signal);
    return server.end();
  }
  static void expect_quiet_end(running& server) { expect_quiet(end_by(SIGINT, server)); }
  // What `mapview view` makes of it.
  [[nodiscard]] std::string viewed(const std::string& region, const std::string& window) const {
    const outcome o = run_line("mapview view " + path("map") + " --out " + path("view.jpg") +
                               " --region " + region + " --window " + window);
    EXPECT_LE(o.exit_code, 1) << o.err;
    std::ifstream in(path("view.jpg"), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

const std::string a_view = "/view?x=50&y=60&width=500&height=400&to_width=300&to_height=200";
const std::string all_of_it = "/view?x=0&y=0&width=700&height=500&to_width=175&to_height=125";

TEST_F(served_maps, look_as_in_files) {
  make_small();
  running server("mapview serve " + path("map"));
  const std::uint16_t port = port_of(server);
  const reply r = get(port, a_view);
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.header("Content-Type"), "image/jpeg");
  EXPECT_EQ(r.header("X-Missing-Tiles"), "0");
  EXPECT_TRUE(r.body == viewed("50,60,500,400", "300x200"));
  EXPECT_TRUE(get(port, all_of_it).body == viewed("0,0,700,500", "175x125"));
  const auto map = nlohmann::json::parse(get(port, "/map.json").body);
  EXPECT_EQ(map.at("width"), 700);
  EXPECT_EQ(map.at("height"), 500);
  EXPECT_EQ(map.at("tiles"), 121);
  EXPECT_EQ(map.at("nodes"), 1);
  EXPECT_EQ(map.at("name"), "map");
  const reply page = get(port, "/");
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page.header("Content-Security-Policy").find("default-src 'self'"), 0U);
  expect_quiet_end(server);
}

TEST_F(served_maps, come_from_two_nodes) {
  make_small();
  expect_quiet(run_in_time([&] {
    running server("strata run -n 2 --workers 1 " APPS_BIN_DIR "/mapview serve " + path("map"));
    const std::uint16_t port = port_of(server);
    EXPECT_TRUE(get(port, a_view).body == viewed("50,60,500,400", "300x200"));
    EXPECT_EQ(nlohmann::json::parse(get(port, "/map.json").body).at("nodes"), 2);
    return end_by(SIGINT, server);
  }));
}

TEST_F(served_maps, are_looked_at_by_several_at_once) {
  make_small();
  running server("mapview serve " + path("map"));
  const std::uint16_t port = port_of(server);
  const std::string one = viewed("50,60,500,400", "300x200");
  const std::string other = viewed("0,0,700,500", "175x125");
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      apps_test::connection kept(port);
      for (int i = 0; i < 10; ++i) {
        const bool first = (c + i) % 2 == 0;
        kept.send("GET " + (first ? a_view : all_of_it) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_TRUE(kept.receive().body == (first ? one : other));
      }
    });
  }
  for (std::thread& c : clients) c.join();
  expect_quiet_end(server);
}

TEST_F(served_maps, refuse_hostile_requests) {
  make_small();
  running server("mapview serve " + path("map"));
  const std::uint16_t port = port_of(server);
  const auto with = [](const std::string& name, const std::string& value) {
    std::string text = a_view;
    const std::size_t at = text.find(name + "=") + name.size() + 1;
    return text.replace(at, std::min(text.find('&', at), text.size()) - at, value);
  };
  std::vector<std::pair<int, std::string>> bad{
      {404, "/../map.json"},
      {404, "/%2e%2e/map.json"},
      {404, "/part0/0_0.jpg"},
      {404, "/etc/passwd"},
      {404, "//"},
      {404, "/view/"},
      {404, "/map.json%00.jpg"},
      {404, "/%uD800"},  // nothing at all, as some decode it
      {400, "/view"},
      {400, a_view + "&more=1"},
      {400, a_view + "&x=51"},
      {400, a_view + "&x=50"},
      {400, a_view + "&%78=50"},
      {414, "/" + std::string(3000, 'a')},
  };
  for (const std::string name : {"x", "y", "width", "height", "to_width", "to_height"}) {
    for (const std::string value :
         {"", "-1", "NaN", "inf", "1e3", "0x10", "+5", "1.5", "%20", "4294967295", "4294967296",
          "99999999999999999999999999", "1%00", "%E2%88%9E", "5%uD800"})
      bad.emplace_back(400, with(name, value));
  }
  bad.emplace_back(400, with("to_width", "4097"));
  bad.emplace_back(400, with("to_height", "0"));
  bad.emplace_back(400, with("width", "0"));
  bad.emplace_back(400, with("width", "651"));  // one more than there is
  bad.emplace_back(400, with("x", "201"));
  for (const auto& [status, target] : bad) {
    const reply r = get(port, target);
    EXPECT_EQ(r.status, status) << target;
    EXPECT_EQ(r.body.find('\n'), r.body.size() - 1) << r.body;
    EXPECT_EQ(r.header("Content-Type"), "text/plain; charset=utf-8");
  }
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
    EXPECT_EQ(get(port, "/", "", method).status, 405) << method;
  EXPECT_EQ(get(port, "/", "", "HEAD").status, 200);
  for (const std::string host :
       {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost:", "[::1]",
        "localhost:99x", "0.0.0.0", "127.0.0.1:80, evil.example"})
    EXPECT_EQ(get(port, "/", "Host: " + host + "\r\n").status, 400) << host;
  EXPECT_EQ(get(port, "/", "Host: localhost\r\nHost: evil.example\r\n").status, 400);
  EXPECT_EQ(get(port, "/", "Host: localhost:8080\r\n").status, 200);
  // A page of another site, in the same browser.
  EXPECT_EQ(get(port, a_view, "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(get(port, a_view, "Sec-Fetch-Site: same-origin\r\n").status, 200);
  EXPECT_EQ(get(port, "/", "Sec-Fetch-Site: cross-site\r\n").status, 200);
  expect_quiet_end(server);
}

// More tiles than threads can be had: the others are loaded without one.
TEST_F(served_maps, are_whole_where_threads_are_refused) {
  if (strata::test::address_sanitizer) GTEST_SKIP() << "it writes an eighth of each stack";
  const outcome made = run_line("mapview make " + path("map") +
                                " --size 700x500 --tile 16x16 "
                                "--levels 0");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* const loader : {"threads", "cluster"}) {
    const std::string few = std::string("--strata-stack-bytes 1G --loader ") + loader;
    const outcome o = run_line("mapview view " + path("map") + " --out " + path("few.jpg") +
                               " --window 175x125 " + few);
    EXPECT_EQ(o.exit_code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    std::ifstream in(path("few.jpg"), std::ios::binary);
    const std::string seen{std::istreambuf_iterator<char>(in), {}};
    const std::string whole = viewed("0,0,700,500", "175x125");
    EXPECT_TRUE(seen == whole);
    running server("mapview serve " + path("map") + " " + few);
    EXPECT_TRUE(get(port_of(server), all_of_it).body == whole);
    expect_quiet_end(server);
  }
}

TEST_F(served_maps, with_holes_say_so) {
  make_small();
  const map_info map = read_map(path("map"));
  std::filesystem::remove(tile_path(path("map"), map, {2, 1}));
  std::ofstream(tile_path(path("map"), map, {3, 1})) << "no picture";
  running server("mapview serve " + path("map"));
  const std::uint16_t port = port_of(server);
  for (int i = 0; i < 2; ++i) {
    const reply r = get(port, a_view);
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("X-Missing-Tiles"), "2");
    EXPECT_TRUE(r.body == viewed("50,60,500,400", "300x200"));
  }
  server.signal(SIGTERM);
  const outcome o = server.end();
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_EQ(o.err_lines(), 3) << o.err;  // each tile once, and why the status is 1
  EXPECT_NE(o.err.find(tile_path(path("map"), map, {2, 1})), std::string::npos) << o.err;
  EXPECT_NE(o.err.find(tile_path(path("map"), map, {3, 1})), std::string::npos) << o.err;
}

TEST_F(served_maps, refuse_bad_input_with_one_line) {
  make_small();
  running server("mapview serve " + path("map"));
  const std::string port = std::to_string(port_of(server));
  for (const std::string& line : {"mapview serve " + path("map") + " --port " + port,
                                  "mapview serve " + path("map") + " --port 65536",
                                  "mapview serve " + path("map") + " --port http",
                                  "mapview serve " + path("none"), std::string("mapview serve")}) {
    const outcome o = run_line(line);
    EXPECT_EQ(o.exit_code, 2) << line;
    EXPECT_EQ(o.err_lines(), 1) << line << "\n" << o.err;
  }
  expect_quiet_end(server);
}

TEST_F(served_maps, end_where_their_address_is_lost) {
  make_small();
  const outcome full = apps_test::run({"mapview", "serve", path("map")}, "/dev/full");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(full.err,
            "mapview: standard output: No space left on device; free some space or write "
            "elsewhere\n");
  // The socket for clients must not be taken for the standard output that there is not.
  const outcome none = apps_test::run({"strata", "run", "sh", "-c", "exec \"$0\" serve \"$1\" >&-",
                                       APPS_BIN_DIR "/mapview", path("map")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, "mapview: standard output: Bad file descriptor\n");
}

TEST_F(served_maps, end_when_a_signal_comes) {
  make_small();
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const std::string job : {"", "strata run -n 2 --workers 1 " APPS_BIN_DIR "/"}) {
      const outcome o = run_in_time([&] {
        running server(job + "mapview serve " + path("map"));
        const std::uint16_t port = port_of(server);
        const apps_test::connection idle(port);
        // end() also waits until nobody has the server's standard output any more.
        outcome end = end_by(signal, server);
        EXPECT_THROW(apps_test::connection again(port), std::runtime_error);
        return end;
      });
      EXPECT_EQ(o.exit_code, 0) << job << signal << o.err;
      EXPECT_EQ(o.err, "") << job;
    }
  }
}

// As nohup and the background of a shell have it.
TEST_F(served_maps, go_on_where_a_signal_is_ignored) {
  make_small();
  ::signal(SIGTERM, SIG_IGN);
  running server("mapview serve " + path("map"));
  ::signal(SIGTERM, SIG_DFL);
  const std::uint16_t port = port_of(server);
  server.signal(SIGTERM);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(get(port, "/").status, 200) << i;
  expect_quiet_end(server);
}

void wait_and_call() {
  stop_signals signals;
  strata::runtime rt;
  rt.run([&] {
    strata::thread caller([] { stop_signals::come(); });
    EXPECT_TRUE(signals.wait());
    caller.join();
  });
}

// As they were, for the tests that follow.
void let_signals_through() {
  for (const int number : {SIGINT, SIGTERM}) ::signal(number, SIG_DFL);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
}

TEST(stop_signals, come_when_called_though_they_are_ignored) {
  ::signal(SIGTERM, SIG_IGN);
  wait_and_call();
  let_signals_through();
}

// A second one some time later would end the process.
TEST(stop_signals, do_not_come_when_the_wait_is_over) {
  wait_and_call();
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
  stop_signals::come();
  ::sigpending(&some);
  EXPECT_EQ(sigismember(&some, SIGTERM), 0);
  ::signal(SIGTERM, SIG_IGN);  // which drops it
  let_signals_through();
}

// One Ctrl-C that comes by two ways, as it does to a group of processes under the launcher.
TEST_F(served_maps, take_two_signals_at_once_for_one) {
  make_small();
  running server("mapview serve " + path("map"));
  (void)port_of(server);
  for (const int signal : {SIGSTOP, SIGINT, SIGTERM, SIGCONT}) server.signal(signal);
  EXPECT_EQ(server.end().exit_code, 0);
}

}  // namespace

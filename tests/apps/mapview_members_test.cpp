// SPDX-License-Identifier: Apache-2.0
// Maps shown by jobs whose nodes come and go.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../members/elastic_job.hpp"
#include "command.hpp"
#include "http_client.hpp"
#include "mapview_fixture.hpp"

namespace {

namespace fs = std::filesystem;
using apps_test::get;
using apps_test::reply;
using launch_test::command;
using launch_test::elastic_job;
using launch_test::words;

class maps_of_members : public apps_test::maps {
 protected:
  static const words& one_worker() {
    static const words flags{"--workers", "1"};
    return flags;
  }
};

TEST_F(maps_of_members, are_whole_though_a_node_has_left_that_was_to_be_asked) {
  make_small();
  elastic_job job("2", "replaced", one_worker(), {path("map")});
  job.wait_for("ready");
  job.leave("1");
  job.expect_ok();
}

TEST_F(maps_of_members, are_whole_while_nodes_come_and_go) {
  // A view of all of it takes level 1; what is missing there comes from the full size.
  make_small(1);
  std::filesystem::remove(path("map") + "/part1/level1_0_1.jpg");
  elastic_job job("1", "come-and-go", one_worker(), {path("map")});
  job.wait_for("alone");
  job.join();
  job.wait_for("together");
  job.join();
  job.leave("1");
  job.leave("2");
  job.expect_ok();
}

TEST_F(maps_of_members, are_as_whole_as_what_the_nodes_of_the_job_can_read) {
  make_small();
  for (const std::string node : {"0", "1", "2"}) {
    fs::create_directories(path(node) + "/map");
    fs::copy(path("map") + "/map.json", path(node) + "/map");
  }
  for (const auto& [part, node] : {std::pair{"part0", "0"}, {"part1", "1"}, {"part2", "0"}})
    fs::copy(path("map") + "/" + part, path(node) + "/map/" + part);
  elastic_job job("2", "of-own-folders", one_worker(), {path("map")},
                  {"sh", "-c", "cd \"$0/$STRATA_NODE\" && exec \"$@\"", folder});
  job.wait_for("of two");
  job.join();
  job.wait_for("of three");
  job.leave("1");
  job.expect_ok();
}

const std::string a_view = "/view?x=50&y=60&width=500&height=400&to_width=300&to_height=200";

TEST_F(maps_of_members, are_served_while_nodes_come_and_go) {
  make_small();
  command server({"run", "-n", "2", "--workers", "1", "--elastic=8", APPS_BIN_DIR "/mapview",
                  "serve", path("map")});
  const std::string open = " is open: strata join ";
  ASSERT_TRUE(server.wait_for_error_output(open)) << server.err();
  ASSERT_TRUE(server.wait_for_error_output("\n"));
  std::string name = server.err().substr(server.err().find(open) + open.size());
  name.resize(name.find('\n'));
  const std::string begin = "http://127.0.0.1:";
  ASSERT_TRUE(server.wait_for_output(begin)) << server.err();
  ASSERT_TRUE(server.wait_for_output("/\n"));
  const auto port = static_cast<std::uint16_t>(
      std::stoi(server.out().substr(server.out().find(begin) + begin.size())));
  const std::string whole = get(port, a_view).body;

  std::atomic<bool> over{false};
  std::atomic<int> views{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      while (!over) {
        const reply r = get(port, a_view);
        EXPECT_EQ(r.status, 200) << r.body;
        EXPECT_EQ(r.header("X-Missing-Tiles"), "0");
        EXPECT_TRUE(r.body == whole);
        ++views;
      }
    });
  }
  const auto wait_for_views = [&] {
    for (const int before = views; views < before + 6;) std::this_thread::yield();
  };
  const auto change = [&](const words& what) {
    command c(what);
    EXPECT_EQ(c.wait(), 0) << c.err();
    wait_for_views();
  };
  wait_for_views();
  change({"join", name});
  change({"leave", name, "1"});
  change({"join", name, "-n", "2"});
  change({"leave", name, "2"});
  change({"leave", name, "4"});
  over = true;
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(nlohmann::json::parse(get(port, "/map.json").body).at("nodes"), 2);
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0) << server.err();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The course of a job as a test plays it: what happens, what the session then does.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launch/messages.hpp"
#include "strata/error.hpp"
#include "tools/strata/course/session.hpp"
#include "tools/strata/events/event_loop.hpp"

namespace launch_test {

using namespace strata::launch;
using namespace strata::launcher;

inline constexpr std::int64_t second = 1'000'000'000;

inline frame unpack(const std::string& bytes) {
  frame_reader reader;
  reader.add(bytes);
  return *reader.next();
}

struct course : job_actions, testing::Test {
  void begin(const session::description& what) {
    job = std::make_unique<session>(what, *this, now);
  }
  void begin(node_id nodes) { begin({.nodes = nodes, .program = "prog"}); }
  void send(node_id node, const std::string& bytes) override {
    sent[node].push_back(unpack(bytes));
  }
  void signal_all(int number) override { signals.push_back(number); }
  void say(const std::string& line) override { said.push_back(line); }
  late_place spawn(node_id node, ticket, const std::vector<node_id>& gone) override {
    if (!cannot_spawn.empty()) throw strata::error(cannot_spawn);
    spawned.push_back({node, gone});
    return {late_host, ""};
  }
  void end(node_id node) override { killed.push_back(node); }
  void joined(ticket who, node_id node) override {
    answers.push_back(std::to_string(who) + ": joined " + std::to_string(node));
  }
  void left(ticket who, node_id node) override {
    answers.push_back(std::to_string(who) + ": left " + std::to_string(node));
  }
  void denied(ticket who, const std::string& why) override {
    answers.push_back(std::to_string(who) + ": " + why);
  }

  void reach(node_id node, const std::string& id = "id") {
    job->on_frame(node, unpack(pack_reachable({id, {"h", node}})), now);
  }
  void find(node_id node, const std::string& what) {
    job->on_frame(node, unpack(pack_found(what)), now);
  }
  // On two networks.
  void reach_by_networks(node_id node) {
    const address where{"", 0, "", {{"h", node, 0}, {}}};
    job->on_frame(node, unpack(pack_reachable({"id", where})), now);
  }
  void tell_closed(node_id node, const std::vector<closed_link>& mine) {
    job->on_frame(node, unpack(pack_closed(frame_kind::closed, mine)), now);
  }
  // On two networks, all of them, and none is closed.
  void all_reach_by_networks(node_id nodes) {
    for (node_id n = 0; n < nodes; ++n) reach_by_networks(n);
    for (unsigned round = 0; round < closed_rounds; ++round) {
      for (node_id n = 0; n < nodes; ++n) tell_closed(n, {});
    }
  }
  void measure(node_id node, const std::vector<measured_link>& mine) {
    job->on_frame(node, unpack(pack_measured(mine)), now);
  }
  void all_reach(node_id nodes) {
    for (node_id n = 0; n < nodes; ++n) reach(n);
  }
  void finish(node_id node) { job->on_frame(node, unpack(pack_finished()), now); }
  // One node has lost the other.
  void miss(node_id node, node_id lost, const std::string& why = "silent") {
    job->on_frame(node, unpack(pack_missed({lost, why})), now);
  }
  void end(node_id node, int status) { job->on_ended(node, {false, status}, now); }
  void kill(node_id node, int number) { job->on_ended(node, {true, number}, now); }
  void leave(node_id node, int status = 0) {
    finish(node);
    end(node, status);
  }
  void pass(std::int64_t ns) {
    now += ns;
    job->on_time(now);
  }
  void expect_over(int status) const {
    EXPECT_TRUE(job->over());
    EXPECT_EQ(job->status(), status);
  }
  // What the nodes of a new job say ends it, with one line.
  template <class What>
  void expect_refused(What&& what) {
    said.clear();
    begin(2);
    what();
    EXPECT_EQ(said.size(), 1U);
    EXPECT_FALSE(job->is_running());
  }
  using lines = std::vector<std::string>;
  using numbers = std::vector<int>;

  static constexpr std::uint16_t late_host = 3;

  std::int64_t now = 0;
  std::unique_ptr<session> job;
  std::map<node_id, std::vector<frame>> sent;
  numbers signals;
  lines said;
  std::vector<std::pair<node_id, std::vector<node_id>>> spawned;
  std::vector<node_id> killed;
  std::string cannot_spawn;
  lines answers;  // to those who asked for changes
};

}  // namespace launch_test

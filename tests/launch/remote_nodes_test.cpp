// SPDX-License-Identifier: Apache-2.0
// Nodes of another host, of which nothing is heard: the test says what their agent does, and what
// time it is.
#include "tools/strata/nodes/remote_nodes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/strata/nodes/agent_messages.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;

struct heard_of final : node_listener {
  unsigned notes = 0, ended = 0;
  std::vector<std::string> lost;
  void on_frame(node_id, const frame&) override {}
  void on_line_ended(node_id, const std::string&) override {}
  void on_ended(node_id, node_end) override { ++ended; }
  void on_output(node_id, output_stream, std::string_view) override {}
  void on_note(const std::string&) override { ++notes; }
  void on_host_lost(const std::vector<node_id>&, const std::string& why, bool) override {
    lost.push_back(why);
  }
};

class remote_nodes_test : public testing::Test {
 protected:
  using lines = std::vector<std::string>;

  remote_nodes_test() {
    ::mkfifo(path.c_str(), 0600);
    // For both, so that nobody waits for another one to open it.
    agent = strata::os::descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  ~remote_nodes_test() override { ::unlink(path.c_str()); }

  // Of a job of so many.
  void start(node_id node, node_id of, bool elastic = false) {
    start_request what;
    what.program = "program";
    what.nodes = {node};
    what.job.nodes = what.job.founders = what.job.capacity = of;
    what.job.host_of.resize(of);
    what.job.start_limit_ns = 5'000'000'000;
    what.job.elastic = elastic;
    nodes.start(what);
  }
  void say(const std::string& frame_bytes) const {
    ASSERT_EQ(::write(agent.get(), frame_bytes.data(), frame_bytes.size()),
              static_cast<ssize_t>(frame_bytes.size()));
  }
  void hear_something() {
    say(pack_note("something"));
    for (const unsigned before = said.notes; said.notes == before;) loop.run_once(no_deadline);
  }
  void look(unsigned times) {
    for (; times != 0; --times) nodes.on_time(now += alive_every_ns);
  }

  const std::string path = testing::TempDir() + "strata-agent-" + std::to_string(::getpid());
  strata::os::descriptor agent;  // what is written here it says
  const inherited_state inherited;
  event_loop loop;
  children processes{loop, inherited};
  heard_of said;
  remote_nodes nodes{
      loop, processes, said, "far", {find_program("sh"), "-c", "exec cat <\"$0\"", path}};
  std::int64_t now = 0;
};

TEST_F(remote_nodes_test, that_fall_silent_are_lost) {
  start(1, 2);
  hear_something();
  nodes.on_time(now);
  look(2);
  hear_something();
  look(3);
  EXPECT_EQ(said.lost, lines());
  EXPECT_EQ(nodes.deadline_ns(), now + alive_every_ns);
  look(1);
  EXPECT_EQ(said.lost, lines{"host far: nothing heard for 30 s"});
  EXPECT_FALSE(nodes.any_running());
  EXPECT_EQ(nodes.deadline_ns(), no_deadline);
}

TEST_F(remote_nodes_test, are_not_lost_because_we_were_stopped) {
  start(1, 2);
  hear_something();
  for (int i = 0; i < 3; ++i) nodes.on_time(now += 100 * alive_every_ns);
  hear_something();
  EXPECT_EQ(said.lost, lines());
}

// Whoever reads the output is slow: of all else that happens there we hear none the less.
TEST_F(remote_nodes_test, are_heard_while_their_output_waits) {
  start(1, 2);
  hear_something();
  nodes.pause_output(true);
  for (int i = 0; i < 10; ++i) {
    look(2);
    hear_something();
  }
  EXPECT_EQ(said.lost, lines());
  say(pack_ended({1, {}}));
  while (nodes.any_running()) loop.run_once(no_deadline);
  EXPECT_EQ(said.ended, 1U);
}

TEST_F(remote_nodes_test, that_fall_silent_while_their_output_waits_are_lost) {
  start(1, 2);
  hear_something();
  nodes.pause_output(true);
  nodes.on_time(now);
  look(3);
  EXPECT_EQ(said.lost, lines{"host far: nothing heard for 30 s"});
}

TEST_F(remote_nodes_test, have_no_limit_before_they_answer_where_the_session_has_one) {
  start(1, 2);
  EXPECT_EQ(nodes.deadline_ns(), no_deadline);
}

TEST_F(remote_nodes_test, that_are_one_have_no_limit_where_others_may_come) {
  start(0, 1, true);
  EXPECT_EQ(nodes.deadline_ns(), no_deadline);
}

TEST_F(remote_nodes_test, that_are_one_must_answer_in_time) {
  start(0, 1);
  now = nodes.deadline_ns();
  nodes.on_time(now - 1);
  EXPECT_EQ(said.lost, lines());
  nodes.on_time(now);
  EXPECT_EQ(said.lost, lines{"host far: no answer within 5 s (--start-limit sets the limit)"});
}

TEST_F(remote_nodes_test, that_have_been_started_get_signals) {
  start(0, 1);
  say(pack_frame(frame_kind::alive, {}));
  while (nodes.deadline_ns() != 0) loop.run_once(no_deadline);
  nodes.signal(SIGTERM);
  EXPECT_EQ(said.lost, lines());
}

TEST_F(remote_nodes_test, of_which_nothing_is_known_are_given_up_at_a_signal) {
  start(0, 1);
  nodes.signal(SIGTERM);
  EXPECT_EQ(said.lost, lines{"host far: no answer"});
}

}  // namespace

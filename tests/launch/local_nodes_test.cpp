// SPDX-License-Identifier: Apache-2.0
// Nodes of one host: what they talk over without memory to share, and what stays of those that end.
#include "tools/strata/local_nodes.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "strata/error.hpp"
#include "tools/strata/program_path.hpp"

namespace {

using strata::transport_choice;
using strata::launch::node_end;
using strata::launch::node_id;

struct noted final : strata::launch::node_listener {
  std::vector<std::string> notes;
  unsigned ended = 0;
  void on_frame(node_id, const strata::launch::frame&) override {}
  void on_line_ended(node_id, const std::string&) override {}
  void on_ended(node_id, node_end) override { ++ended; }
  void on_output(node_id, strata::launch::output_stream, std::string_view) override {}
  // Few cores are another matter.
  void on_note(const std::string& text) override {
    if (text.find("memory") != std::string::npos) notes.push_back(text);
  }
  void on_host_lost(const std::vector<node_id>&, const std::string&, bool) override {}
};

// Two nodes that talk so begin, and a third one comes: what is said, or what they fail with.
std::vector<std::string> said_without_memory(transport_choice transport) {
  const strata::launch::inherited_state inherited;
  strata::launch::event_loop loop;
  strata::launch::children processes(loop, inherited);
  noted said;
  strata::launch::local_nodes nodes(loop, processes, said, -1, [] {
    errno = ENOMEM;
    return -1;
  });
  strata::launch::start_request what;
  what.program = strata::launch::find_program("true");
  what.arguments = {"true"};
  what.workers = 1;
  what.bind = false;
  what.nodes = {0, 1};
  what.job.nodes = what.job.founders = 2;
  what.job.capacity = 3;
  what.job.elastic = true;
  what.job.host_of = {0, 0, 0};
  what.job.transport = transport;
  try {
    nodes.start(what);
    what.nodes = {2};
    what.job.nodes = 3;
    what.job.late = true;
    nodes.start(what);
  } catch (const strata::error& problem) {
    said.notes.push_back(std::string("failed: ") + problem.what());
  }
  return said.notes;
}

TEST(local_nodes, without_memory_say_over_what_they_talk) {
  const std::string why =
      "cannot create memory that the nodes of this host share: Cannot allocate memory; ";
  using lines = std::vector<std::string>;
  EXPECT_EQ(said_without_memory(transport_choice::automatic),
            lines{why + "they talk over TCP instead"});
  EXPECT_EQ(said_without_memory(transport_choice::shm_ucx),
            lines{why + "they talk over UCX instead"});
  EXPECT_EQ(said_without_memory(transport_choice::shm_udp),
            lines{why + "they talk over UDP instead"});
  EXPECT_EQ(said_without_memory(transport_choice::shm),
            lines{"failed: " + why + "use --transport tcp, or free memory"});
  EXPECT_EQ(said_without_memory(transport_choice::tcp), lines{});
}

// Who reads is slower than who writes, as a launcher is that also passes it on.
struct slow_reader final : strata::launch::node_listener {
  unsigned ended = 0;
  void on_frame(node_id, const strata::launch::frame&) override {}
  void on_line_ended(node_id, const std::string&) override {}
  void on_ended(node_id, node_end) override { ++ended; }
  void on_output(node_id, strata::launch::output_stream, std::string_view) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  void on_note(const std::string&) override {}
  void on_host_lost(const std::vector<node_id>&, const std::string&, bool) override {}
};

// One of two nodes, whose end is told though what it has left behind writes for ever.
TEST(local_nodes, end_though_an_orphan_of_theirs_writes) {
  const strata::launch::inherited_state inherited;
  strata::launch::event_loop loop;
  strata::launch::children processes(loop, inherited);
  slow_reader reader;
  strata::launch::local_nodes nodes(loop, processes, reader, -1);
  strata::launch::start_request what;
  what.program = strata::launch::find_program("sh");
  what.arguments = {"sh", "-c", "test $STRATA_NODE = 0 || exec sleep 1000; yes & exit 0"};
  what.workers = 1;
  what.bind = false;
  what.capture_output = true;
  what.nodes = {0, 1};
  what.job.nodes = what.job.founders = what.job.capacity = 2;
  what.job.host_of = {0, 0};
  what.job.transport = transport_choice::tcp;
  nodes.start(what);
  while (reader.ended < 1) loop.run_once(strata::launch::no_deadline);
  nodes.abandon();
  while (reader.ended < 2) loop.run_once(strata::launch::no_deadline);
  EXPECT_FALSE(nodes.any_running());
}

// Hundreds may come and leave while a job runs.
TEST(local_nodes, that_have_ended_keep_no_descriptor) {
  const auto open_ones = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const strata::launch::inherited_state inherited;
  strata::launch::event_loop loop;
  strata::launch::children processes(loop, inherited);
  noted said;
  strata::launch::local_nodes nodes(loop, processes, said, -1);
  strata::launch::start_request what;
  what.program = strata::launch::find_program("true");
  what.arguments = {"true"};
  what.workers = 1;
  what.bind = false;
  what.capture_output = true;
  what.job.capacity = 4;
  what.job.elastic = true;
  what.job.host_of = {0, 0, 0, 0};
  std::vector<std::ptrdiff_t> open_after;
  for (node_id node = 0; node < 4; ++node) {
    what.nodes = {node};
    what.job.nodes = static_cast<node_id>(node + 1);
    what.job.late = node != 0;
    nodes.start(what);
    while (said.ended <= node) loop.run_once(strata::launch::no_deadline);
    open_after.push_back(open_ones());
  }
  EXPECT_EQ(open_after, std::vector(4, open_after[0]));
}

}  // namespace

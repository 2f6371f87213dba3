// SPDX-License-Identifier: Apache-2.0
// strata info: what it says of a job to be, and of the one that it runs in.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "command.hpp"
#include "run_to_end.hpp"

namespace {

using launch_test::result;
using launch_test::run_to_end;
using launch_test::words;

TEST(info, says_what_a_job_would_get) {
  const result r = run_to_end({"info", "-n", "2"});
  EXPECT_EQ(r.status, 0);
  for (const char* const part : {"strata ", "build ", "worker", "CPU", "node 1: "}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << r.out;
  }
}

TEST(info, says_as_what_node_of_a_job_it_runs) {
  for (const words& flags : {words{"-n", "2"}, {"-n", "2", "--elastic"}}) {
    words line{"run"};
    line.insert(line.end(), flags.begin(), flags.end());
    line.insert(line.end(), {STRATA_COMMAND, "info"});
    const result r = run_to_end(line);
    EXPECT_EQ(r.status, 0) << r.err;
    for (const char* const node : {"0", "1"}) {
      EXPECT_TRUE(launch_test::contains(r.out, "launch: strata run, node " + std::string(node) +
                                                   " of 2, 2 of them on this host\n"))
          << r.out;
    }
    EXPECT_FALSE(launch_test::contains(r.err, "a Strata program")) << r.err;
  }
}

TEST(info, in_a_script_leaves_the_node_to_the_program_that_comes_after) {
  for (const char* const nodes : {"1", "2"}) {
    const result r =
        run_to_end({"run", "-n", nodes, "sh", "-c", "\"$0\" info && exec \"$@\"", STRATA_COMMAND,
                    launch_test::node_program(), "join", "finish", "@0:print:joined"});
    EXPECT_EQ(r.status, 0) << r.err;
    for (const std::string& line :
         {"launch: strata run, node 0 of " + std::string(nodes) + ", ", std::string("joined\n")})
      EXPECT_TRUE(launch_test::contains(r.out, line)) << r.out;
  }
}

TEST(info, of_one_node_has_no_routes) {
  const std::string why =
      "strata info: a job of one node has no routes; give it two or more with strata info --routes "
      "-n N\n";
  EXPECT_EQ(run_to_end({"info", "--routes", "-n", "1"}).err, why);
  EXPECT_EQ(run_to_end({"report-routes"}).err, why);
}

TEST(info, measures_the_ways_between_two_nodes_unless_told_otherwise) {
  const result r = run_to_end({"info", "--routes", "--transport", "tcp"});
  EXPECT_EQ(r.status, 0) << r.err;
  std::istringstream lines(r.out);
  std::string heading;
  std::getline(lines, heading);
  std::getline(lines, heading);
  for (const unsigned from : {0U, 1U}) {
    unsigned a = 9, b = 9, next = 9, hops = 9;
    std::string by, latency, bandwidth, cost;
    double us = 0, rate = 0;
    EXPECT_TRUE(lines >> a >> b >> next >> hops >> by >> us >> rate >> latency >> bandwidth >> cost)
        << r.out;
    EXPECT_EQ(a, from);
    EXPECT_EQ(b, 1 - from);
    EXPECT_EQ(next, b);
    EXPECT_EQ(hops, 1U);
    EXPECT_EQ(by, "tcp");
    EXPECT_GT(us, 0);
    EXPECT_GT(rate, 0);
    // Nothing is measured before a job on one network begins, so what it costs is nominal.
    EXPECT_EQ(latency + bandwidth, "--");
    EXPECT_EQ(cost, "6.6");
  }
}

}  // namespace

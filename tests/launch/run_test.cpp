// SPDX-License-Identifier: Apache-2.0
// strata run with real processes: statuses, messages, and that nothing is left of a job.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "../common/slow_builds.hpp"
#include "command.hpp"
#include "os/topology.hpp"
#include "run_to_end.hpp"

namespace {

using launch_test::command;
using launch_test::count_lines;
using launch_test::node_program;
using launch_test::result;
using launch_test::run;
using launch_test::run_to_end;
using launch_test::words;

TEST(run, four_nodes_meet_and_leave) {
  const result r = run_to_end(run({"-n", "4"}, {"join", "describe", "finish"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(count_lines(r.out), 4U);
  for (const char* const node : {"node 0 of 4 host 0", "node 3 of 4 host 0"}) {
    EXPECT_NE(r.out.find(node), std::string::npos) << r.out;
  }
  EXPECT_NE(r.out.find("at 127.0.0.1 memory yes"), std::string::npos) << r.out;
}

void expect_refused(const words& what, const std::string& why, const command::setting& how = {}) {
  const result r = run_to_end(what, how);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_NE(r.err.find(why), std::string::npos) << r.err;
}

TEST(run, says_that_its_output_went_nowhere) {
  const command::setting closed{.around = {"sh", "-c", "exec \"$@\" >&-", "sh"}};
  expect_refused({"info"}, "standard output: ", closed);
}

TEST(run, names_what_is_wrong_with_its_words) {
  expect_refused({"run", "--strata-stats", "prog"},
                 "--strata-stats is the program's: it goes after");
  expect_refused({"run", "-n", "2", ""}, "the program's name is empty");
  expect_refused({"info", "--routes", "--networks", "foo"}, "--networks: 'foo' is no network");
  expect_refused({"info", "--routes", "--networks"}, "--networks needs a value");
  expect_refused({"run", "--hostfile", "no\x1B[31m"}, "no\\x1B[31m");
  expect_refused({"run", "--hostfile", "/dev/zero", "true"}, "/dev/zero is longer than 1 MiB");
  const auto script =
      std::filesystem::temp_directory_path() / ("strata-script-" + std::to_string(::getpid()));
  std::ofstream(script) << "#! /no/such/sh -e\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  expect_refused({"run", script}, "is a script for /no/such/sh, and there is no such program");
  std::ofstream(script) << "localhost\n";
  expect_refused({"run", "--host", "localhost", "--hostfile", script, "true"},
                 "--host and --hostfile exclude each other");
  std::filesystem::remove(script);
}

// Where nothing can be written, as in some containers.
TEST(run, says_where_else_an_open_job_may_be_listed) {
  expect_refused({"run", "--elastic", "true"}, "; set XDG_RUNTIME_DIR to a folder of your own\n",
                 {.variables = {"XDG_RUNTIME_DIR=/proc/self"}});
}

TEST(run, helps_with_routes_where_it_helps_with_info) {
  const result r = run_to_end({"info", "--routes", "--help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.out.find("--networks LIST"), std::string::npos) << r.out;
}

TEST(run, passes_on_input_and_output_with_little_stack) {
  if (strata::test::address_sanitizer || strata::test::thread_sanitizer)
    GTEST_SKIP() << "stack frames are larger";
  command c(
      {"run", "-n", "1", "cat"},
      {.input = "some\ninput\n", .around = {"sh", "-c", "ulimit -s 64 && exec \"$@\"", "sh"}});
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), "some\ninput\n");
}

TEST(run, says_nothing_of_its_own_where_sys_is_not_mounted) {
  const launch_test::words without{
      "unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys && exec \"$@\"", "sh"};
  if (command({"true"}, {.around = without, .other = true}).wait() != 0)
    GTEST_SKIP() << "needs the right to make namespaces";
  command c({"info"}, {.around = without});
  EXPECT_EQ(c.wait(), 0);
  EXPECT_EQ(c.err(), "");
}

TEST(run, takes_two_names_of_this_host) {
  const result r = run_to_end(run({"-n", "2", "--host", "127.0.0.1,localhost", "--workers", "1"},
                                  {"join", "@1:describe", "finish"}));
  EXPECT_EQ(r.status, 0) << r.err;
  // They share cores, and memory.
  EXPECT_EQ(r.out.rfind("node 1 of 2 host 0 workers 1 cpus", 0), 0U) << r.out;
  EXPECT_TRUE(launch_test::contains(r.out, "memory yes\n")) << r.out;
}

TEST(run, more_nodes_than_cores_work_with_one_warning) {
  const std::string nodes = std::to_string(strata::os::choose_workers().workers + 7);
  command c(run({"-n", nodes}, {"join", "@0:describe", "finish"}));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.out().find("workers 1 cpus at"), std::string::npos) << c.out();
  EXPECT_EQ(count_lines(c.err()), 1U) << c.err();
  EXPECT_NE(c.err().find("expect no speed-up"), std::string::npos) << c.err();
}

TEST(run, wishes_reach_the_nodes) {
  EXPECT_NE(run_to_end(run({"--workers", "3", "--bind", "none"}, {"join", "describe", "finish"}))
                .out.find("workers 3 cpus at"),
            std::string::npos);
  EXPECT_NE(run_to_end(run({"-n", "2", "--transport", "tcp"}, {"join", "@0:describe", "finish"}))
                .out.find("memory no"),
            std::string::npos);
  const result r =
      run_to_end(run({"--print-binding", "--bind", "none", "--workers", "1"}, {"join", "finish"}));
  EXPECT_EQ(r.err, "strata run: node 0: 1 worker, not bound\n");
  EXPECT_EQ(run_to_end(run({"-n", "2", "-x", "A=1", "-x", "B=x y"},
                           {"join", "@1:variable:A", "@1:variable:B", "finish"}))
                .out,
            "A=1\nB=x y\n");
  // What is said to the launcher beats what the environment says.
  EXPECT_EQ(run_to_end(run({"--workers", "3", "--bind", "core", "-x", "STRATA_WORKERS=5"},
                           {"join", "variable:STRATA_WORKERS", "variable:STRATA_BIND", "finish"}),
                       {.variables = {"STRATA_WORKERS=7", "STRATA_BIND=no"}})
                .out,
            "STRATA_WORKERS=3\nSTRATA_BIND=yes\n");
  EXPECT_EQ(run_to_end(run({}, {"join", "variable:STRATA_WORKERS", "finish"}),
                       {.variables = {"STRATA_WORKERS=7"}})
                .out,
            "STRATA_WORKERS=7\n");
  // The line is not for the children of a node.
  EXPECT_EQ(run_to_end(run({}, {"join", "variable:STRATA_JOB_FD", "finish"})).out,
            "STRATA_JOB_FD=(none)\n");
}

// Which would wait for what the first one has been told, and is not said twice.
TEST(run, one_program_of_a_script_is_the_node) {
  const auto of_script = [](const std::string& nodes, const std::string& text) {
    return run_to_end({"run", "-n", nodes, "sh", "-c", text, node_program(), "%m"});
  };
  for (const char* const nodes : {"1", "2"}) {
    for (const char* const first : {"join finish", "join exit:3"}) {
      const result r =
          of_script(nodes, std::string("\"$0\" \"$1\" ") + first + "; \"$0\" \"$1\" join finish");
      EXPECT_EQ(r.status, 9) << first;
      EXPECT_NE(r.err.find("another program has had this node's part in the job"),
                std::string::npos)
          << r.err;
    }
  }
  const result r =
      of_script("2", "\"$0\" \"$1\" join finish; env -u STRATA_JOB_FD \"$0\" \"$1\" join exit:0");
  EXPECT_EQ(r.status, 0) << r.err;
}

#if defined(STRATA_HAS_UCX)
// UCX would write its log where results go, and replace the handlers of our signals.
TEST(run, ucx_is_told_to_stay_in_the_background_unless_the_user_has_said_otherwise) {
  const words actions = {"join", "@0:variable:UCX_LOG_FILE", "@0:variable:UCX_HANDLE_ERRORS",
                         "@0:describe", "finish"};
  const result r = run_to_end(run({"-n", "2", "--transport", "ucx"}, actions));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.substr(0, r.out.find("node")), "UCX_LOG_FILE=stderr\nUCX_HANDLE_ERRORS=none\n");
  EXPECT_NE(r.out.find("memory no"), std::string::npos) << r.out;
  EXPECT_EQ(run_to_end(run({"-n", "2", "--transport", "ucx", "-x", "UCX_LOG_FILE=file"},
                           {"join", "@0:variable:UCX_LOG_FILE", "finish"}),
                       {.variables = {"UCX_HANDLE_ERRORS=bt"}})
                .out,
            "UCX_LOG_FILE=file\n");
}
TEST(run, ucx_between_hosts_leaves_memory_to_the_nodes_of_a_host) {
  const result r = run_to_end(run({"-n", "2", "--transport", "shm+ucx"},
                                  {"join", "@0:variable:UCX_LOG_FILE", "@0:describe", "finish"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.substr(0, r.out.find("node")), "UCX_LOG_FILE=stderr\n");
  EXPECT_NE(r.out.find("memory yes"), std::string::npos) << r.out;
}
#else
TEST(run, a_build_without_ucx_says_so) {
  for (const char* const transport : {"ucx", "shm+ucx"}) {
    const result r = run_to_end(run({"-n", "2", "--transport", transport}, {"join", "finish"}));
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(count_lines(r.err), 1U) << r.err;
    EXPECT_NE(r.err.find("has no UCX"), std::string::npos) << r.err;
  }
}
#endif

TEST(run, the_status_is_node_0s) {
  EXPECT_EQ(run_to_end(run({"-n", "2"}, {"join", "finish", "@0:exit:3"})).status, 3);
}

TEST(run, or_if_that_is_0_that_of_the_first_node_that_failed_after_it_had_finished) {
  EXPECT_EQ(run_to_end(run({"-n", "3"}, {"join", "finish", "@1:exit:5"})).status, 5);
  EXPECT_EQ(run_to_end(run({"-n", "2"}, {"join", "finish", "@0:exit:3", "@1:exit:5"})).status, 3);
  EXPECT_EQ(run_to_end(run({"-n", "2"}, {"join", "finish", "@1:raise:11"})).status, 139);
}

TEST(run, alone_any_program_runs) {
  EXPECT_EQ(run_to_end({"run", "true"}).status, 0);
  EXPECT_EQ(run_to_end({"run", "-n", "1", "false"}).status, 1);
  const result r = run_to_end(run({"-n", "1"}, {"raise:11"}));
  EXPECT_EQ(r.status, 139);
  EXPECT_EQ(r.err, "strata run: node 0 was killed by signal 11 (SIGSEGV)\n");
  EXPECT_EQ(run_to_end({"run", "--", "echo", "-n", "--prefix"}).out, "--prefix");
  EXPECT_EQ(run_to_end({"run", "-x", "A=", "-n1", "echo", "--host="}).out, "--host=\n");
}

TEST(run, another_kind_of_program_on_two_nodes_is_an_error) {
  const result r = run_to_end({"run", "-n", "2", "true"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find(" ended before it joined: is true a Strata program, and does it make a "
                       "strata::runtime with these arguments?\n"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(count_lines(r.err), 1U);
}

TEST(run, a_program_that_is_asked_for_help_has_nothing_to_join) {
  const result r = run_to_end(run({"-n", "3"}, {"exit:0", "--help"}));
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.err, "");
}

TEST(run, a_program_that_dislikes_its_arguments_speaks_for_itself) {
  const result r = run_to_end(run({"-n", "3"}, {"@0:complain:usage", "exit:2"}));
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.err, "usage\n");
}

struct death {
  const char* action;
  int status;
  const char* line;
};

TEST(run, a_node_that_dies_is_named_and_ends_the_job) {
  for (const death& d : {death{"@2:raise:9", 137, "node 2 was killed by signal 9 (SIGKILL)"},
                         death{"@2:raise:6", 134, "node 2 was killed by signal 6 (SIGABRT)"},
                         death{"@2:exit:4", 4, "node 2 ended with status 4 before the job did"},
                         death{"@2:exit:0", 1, "node 2 ended with status 0 before the job did"},
                         death{"@0:raise:9", 137, "node 0 was killed by signal 9 (SIGKILL)"},
                         death{"@0:exit:0", 1, "node 0 ended with status 0 before the job did"}}) {
    const result r = run_to_end(run({"-n", "3"}, {"join", d.action, "wait"}));
    EXPECT_EQ(r.status, d.status) << d.action;
    EXPECT_EQ(r.err, "strata run: " + std::string(d.line) + "; the job is stopped\n");
    // The others heard of it and ended by themselves.
    EXPECT_EQ(count_lines(r.out), 2U) << r.out;
    EXPECT_NE(r.out.find(std::string(": ") + d.line), std::string::npos) << r.out;
  }
}

TEST(run, a_node_that_dies_while_starting_is_named) {
  const result killed = run_to_end(run({"-n", "3"}, {"@1:raise:9", "join"}));
  EXPECT_EQ(killed.status, 137);
  EXPECT_EQ(killed.err,
            "strata run: node 1 was killed by signal 9 (SIGKILL) before all had joined; the job is "
            "stopped\n");
  const result left = run_to_end(run({"-n", "3"}, {"@1:exit:4", "join"}));
  EXPECT_EQ(left.status, 4);
  EXPECT_EQ(left.err,
            "strata run: node 1 ended with status 4 before it joined; the job is stopped\n");
}

TEST(run, who_does_not_come_is_named) {
  const result r =
      run_to_end(run({"-n", "3", "--start-limit", "0.5"}, {"ignore:15", "@1:sleep", "join"}));
  EXPECT_EQ(r.status, 1);
  // On a busy machine the others may be late as well.
  words possible;
  for (const std::string late : {"node 1", "nodes 0-1", "nodes 1-2", "nodes 0-2"}) {
    possible.push_back("strata run: " + late +
                       " did not join within 0.5 s (--start-limit sets the limit); the job is "
                       "stopped\n");
  }
  EXPECT_EQ(std::count(possible.begin(), possible.end(), r.err), 1) << r.err;
}

TEST(run, another_build_is_named) {
  const result r = run_to_end(run({"-n", "2"}, {"@1:build:ab", "join"}));
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err.rfind("strata run: node 1 runs another build of launch_node than node 0 (build "
                        "ids ab and ",
                        0),
            0U)
      << r.err;
}

TEST(run, a_node_that_closes_its_line_is_lost) {
  command c(run({"-n", "2"}, {"join", "@1:pid", "@1:drop", "@1:sleep", "wait"}));
  // Its end is awaited, since that would say more; then node 0 is told, and ends.
  ASSERT_TRUE(c.wait_for_output("node 0: node 1 closed its line to the launcher\n")) << c.err();
  const std::string before = "pid ";
  // The launcher would do it, some time.
  ::kill(std::stoi(c.out().substr(c.out().find(before) + before.size())), SIGTERM);
  EXPECT_EQ(c.wait(), 1);
  EXPECT_TRUE(launch_test::contains(
      c.err(), "strata run: node 1 closed its line to the launcher; the job is stopped\n"))
      << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST(run, orphans_of_nodes_end_with_the_job) {
  EXPECT_EQ(run_to_end(run({"-n", "2"}, {"join", "orphan", "finish"})).status, 0);
  EXPECT_EQ(run_to_end(run({"-n", "2", "--prefix"}, {"join", "orphan", "finish"})).status, 0);
}

TEST(run, input_goes_to_node_0_alone) {
  const command::setting how{.input = "some\ninput\n"};
  EXPECT_EQ(run_to_end(run({"-n", "3"}, {"join", "input", "finish"}), how).out, "some\ninput\n");
}

TEST(run, prefixed_lines_stay_whole) {
  const result r =
      run_to_end(run({"-n", "3", "--prefix"}, {"join", "lines:2000", "mumble:end", "finish"}));
  EXPECT_EQ(r.status, 0);
  std::istringstream lines(r.out);
  std::multiset<std::string> seen;
  for (std::string line; std::getline(lines, line);) seen.insert(line);
  EXPECT_EQ(seen.size(), 3U * 2001U);
  for (const std::string node : {"0", "1", "2"}) {
    for (int i = 0; i < 2000; ++i) {
      EXPECT_EQ(seen.count("[" + node + "] line " + std::to_string(i) + " of node " + node +
                           ", long enough to be torn apart by carelessness"),
                1U);
    }
    EXPECT_EQ(seen.count("[" + node + "] end"), 1U);
  }
  EXPECT_EQ(run_to_end(run({"-n", "2", "--prefix"}, {"join", "@1:complain:oh", "finish"})).err,
            "[1] oh\n");
}

// Longer ones than a pipe takes at once, which is full most of the time.
TEST(run, prefixed_lines_stay_whole_where_both_outputs_end_in_one_pipe) {
  const command::setting slowly_read{
      .around = {"sh", "-c", "\"$@\" 2>&1 | while read -r line; do echo \"$line\"; done", "sh"}};
  const std::string complaint = "complain:" + std::string(9000, 'x');
  const result r =
      run_to_end(run({"-n", "2", "--prefix"}, {"join", "lines:1000", complaint, complaint,
                                               "lines:1000", complaint, complaint, "finish"}),
                 slowly_read);
  std::istringstream lines(r.out);
  std::size_t printed = 0, complained = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string text = line.substr(std::min<std::size_t>(line.size(), 4));
    if (text == std::string(9000, 'x')) {
      ++complained;
    } else if (text.rfind("line ", 0) == 0 && text.find(" by carelessness") + 16 == text.size()) {
      ++printed;
    } else if (line.find("expect no speed-up") == std::string::npos) {
      ADD_FAILURE() << line.substr(0, 200);
    }
  }
  EXPECT_EQ(printed, 4000U);
  EXPECT_EQ(complained, 8U);
}

TEST(run, a_program_started_by_a_script_is_a_node) {
  const result r = run_to_end({"run", "-n", "2", "sh", "-c", "\"$@\"; exit $?", "sh",
                               node_program(), "%m", "join", "@1:describe", "finish"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.rfind("node 1 of 2", 0), 0U) << r.out;
}

struct refusal {
  words line;
  std::string why;
};

// The test's name for ctest.
void PrintTo(const refusal& r, std::ostream* out) { *out << testing::PrintToString(r.line); }

class refused : public testing::TestWithParam<refusal> {};

TEST_P(refused, one_line_and_status_2) {
  const result r = run_to_end(GetParam().line);
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_EQ(r.err.rfind("strata", 0), 0U) << r.err;
  EXPECT_TRUE(launch_test::contains(r.err, GetParam().why)) << r.err;
}

INSTANTIATE_TEST_SUITE_P(
    command_lines, refused,
    testing::Values(
        refusal{{}, "strata: which command? strata --help"},
        refusal{{"walk"}, "'walk' is not a command; strata --help"},
        refusal{{"run"}, "strata run: which program?"},
        refusal{{"run", "-n", "2"}, "strata run: which program?"},
        refusal{{"run", "-n"}, "-n: 1 required"},
        refusal{{"run", "-n", "0", "true"}, "-n: '0' is not a whole number from 1 to 4096"},
        refusal{{"run", "-n", "4097", "true"}, "-n: '4097' is not a whole number from 1 to 4096"},
        refusal{{"run", "-n", "two", "true"}, "-n: 'two' is not a whole number"},
        refusal{{"run", "-n", "-1", "true"}, "-n: '-1' is not a whole number"},
        refusal{{"run", "--workers", "0", "true"},
                "--workers: '0' is not a whole number from 1 to 4096"},
        refusal{{"run", "--no-such-flag", "true"}, "unknown flag --no-such-flag"},
        refusal{{"run", "no-such-program-here"},
                "there is no program no-such-program-here along PATH"},
        refusal{{"run", "./no-such-program-here"}, "there is no program ./no-such-program-here"},
        refusal{{"run", "/etc/passwd"}, "/etc/passwd is not executable"},
        refusal{{"run", "/tmp"}, "/tmp is a folder, not a program"},
        refusal{{"run", "--transport", "pigeon", "true"}, "--transport: 'pigeon' is none of: auto"},
        refusal{{"run", "--transport", "shm+foo", "true"},
                "--transport: 'shm+foo' is none of: auto"},
        refusal{{"run", "--transport", "ucx+udp", "true"},
                "--transport: 'ucx+udp' is none of: auto"},
        refusal{{"run", "--bind", "socket", "true"}, "--bind: 'socket' is none of: core, none"},
        refusal{{"run", "-x", "=1", "true"}, "-x: '=1' is not VAR or VAR=VALUE"},
        refusal{{"run", "--host=", "true", "true"}, "'--host=' names no value"},
        refusal{{"run", "-x", "A=1", "--elastic=", "true"}, "'--elastic=' names no value"},
        refusal{{"run", "-x", "NO_SUCH_VARIABLE_HERE", "true"},
                "-x: the variable NO_SUCH_VARIABLE_HERE is not set"},
        refusal{{"run", "--elastic=2", "-n", "3", "true"}, "--elastic=2 is less than -n 3"},
        refusal{{"run", "--elastic=many", "true"}, "--elastic: 'many' is not a whole number"},
        refusal{{"run", "--elastic=4097", "true"},
                "--elastic: '4097' is not a whole number from 1 to 4096"},
        refusal{{"join"}, "strata join: job is required"},
        refusal{{"join", "12345678", "-n", "0"}, "-n: '0' is not a whole number"},
        refusal{{"join", "12345678", "--host", "no-such-host.invalid"},
                "the host no-such-host.invalid has no address"},
        refusal{{"leave", "12345678"}, "strata leave: node is required"},
        refusal{{"leave", "12345678", "one"}, "NODE: 'one' is not a whole number"},
        refusal{{"leave", "thisone!", "1"}, "'thisone!' is not a job, nor the first digits of one"},
        refusal{{"jobs", "more"}, "strata jobs: The following argument was not expected: more"},
        refusal{{"run", "--start-limit", "0", "true"},
                "--start-limit: '0' is not a number of seconds"},
        refusal{{"run", "--start-limit", "soon", "true"},
                "--start-limit: 'soon' is not a number of seconds"},
        refusal{{"run", "--hostfile", "/no/such/file", "true"}, "/no/such/file"},
        refusal{{"run", "--host", "a,,b", "true"}, "--host: '' is not the name of a host"},
        refusal{{"run", "-n", "2", "--host", "no-such-host.invalid", "true"},
                "the host no-such-host.invalid has no address"},
        refusal{{"run", "-n", "2", "--host", "no-such-host.invalid", "--host", "localhost", "true"},
                "the host no-such-host.invalid has no address"},
        refusal{{"run", "-n", "3", "--host", "localhost:2", "true"},
                "the hosts take 2 nodes and -n says 3"},
        refusal{{"run", "-n", "2", "--host", "localhost", "--hostfile", "x", "true"},
                "the hostfile x"},
        refusal{{"run", "--bind-address", "no-such-host.invalid", "true"},
                "--bind-address: the host no-such-host.invalid has no address"},
        refusal{{"run", "--bind-address", "", "true"}, "--bind-address: '' is no address"},
        refusal{{"run", "--bind-address", "0.0.0.0", "true"},
                "nodes cannot be reached at 0.0.0.0, which stands for all addresses"},
        refusal{{"info", "-n", "0"}, "-n: '0' is not a whole number"},
        refusal{{"info", "more"}, "strata info: The following argument was not expected: more"},
        refusal{{"info", "--workers", "3"}, "strata info: unknown flag --workers"},
        refusal{{"leave", "--no-such", "12345678"}, "strata leave: unknown flag --no-such"},
        refusal{{"info", "--routes", "-n", "1"}, "a job of one node has no routes"},
        refusal{{"info", "--routes", "--no-such"}, "unknown flag --no-such"},
        refusal{{"info", "--routes", "-n", "2", "--networks", "somewhere"},
                "--networks: 'somewhere' is no network"}));

TEST(run, names_the_transports_that_go_together) {
  const result r = run_to_end({"run", "--transport", "ucx+udp", "true"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.err,
            "strata run: --transport: 'ucx+udp' is none of: auto, shm, shm+tcp, shm+ucx, shm+udp, "
            "tcp, ucx, udp\n");
}

TEST(run, a_file_that_is_no_program_is_refused) {
  const std::string path = testing::TempDir() + "strata-no-program-" + std::to_string(::getpid());
  const auto write = [](const std::string& file, const std::string& text) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  };
  std::ofstream(path) << "not a program\n";
  expect_refused({"run", path}, "is not executable");
  write(path, "not a program\n");
  expect_refused({"run", "-n", "2", path}, "it is no program of this system");
  for (const char* const first : {"#!/bin/sh", "#!/usr/bin/env sh"}) {
    write(path, std::string(first) + "\r\ntrue\r\n");
    expect_refused({"run", path}, "is a script whose lines end as on Windows (CR LF)");
  }
  const std::string interpreter = path + "-interpreter";
  write(interpreter, "#!/no/such/sh\n");
  write(path, "#! " + interpreter + "\n");
  expect_refused({"run", path}, "what it names as its loader or interpreter is not there");
  std::filesystem::remove(path);
  std::filesystem::remove(interpreter);
}

}  // namespace

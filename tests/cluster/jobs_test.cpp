// SPDX-License-Identifier: Apache-2.0
// What works within a node works between nodes: over every transport, however messages are noticed
// and work is spread.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "command.hpp"
#include "ways_of_jobs.hpp"

namespace {

using launch_test::command;
using launch_test::transports;
using launch_test::way;
using launch_test::words;

void expect_ok(const words& flags, const words& arguments) {
  launch_test::expect_ok(launch_test::run(flags, arguments));
}

class jobs : public launch_test::in_several_ways {};

INSTANTIATE_TEST_SUITE_P(
    ways, jobs,
    testing::Values(way{"shm_2", "2", "shm"}, way{"shm_5", "5", "shm"}, way{"tcp_2", "2", "tcp"},
                    way{"tcp_4", "4", "tcp"}, way{"udp_3", "3", "udp"},
                    way{"polling_udp", "2", "udp", {"--strata-reception=polling"}},
                    way{"blocking", "2", "tcp", {"--strata-reception=blocking"}},
                    way{"polling", "3", "shm", {"--strata-reception=polling"}},
                    way{"polling_tcp", "2", "tcp", {"--strata-reception=polling"}},
                    way{"watchdog", "3", "tcp", {"--strata-reception=watchdog"}},
                    way{"two_workers", "2", "shm", {"--strata-workers=2"}},
                    way{"sender", "3", "shm", {"--strata-balancing=sender"}},
                    way{"informed", "3", "tcp", {"--strata-balancing=informed"}},
                    way{"small_sockets", "3", "tcp", {"--strata-socket-bytes=8K"}},
                    way{"blocking_io", "2", "tcp", {"--strata-socket-io=blocking"}},
                    way{"select", "3", "tcp", {"--strata-socket-poll=select"}}),
    launch_test::name_of_param);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(
    ucx, jobs,
    testing::Values(way{"ucx_2", "2", "ucx"}, way{"ucx_4", "4", "ucx"},
                    way{"ucx_polling", "2", "ucx", {"--strata-reception=polling"}},
                    way{"ucx_watchdog", "3", "ucx", {"--strata-reception=watchdog"}}),
    launch_test::name_of_param);
#endif

TEST_P(jobs, compute_with_tokens) { run("tokens"); }
TEST_P(jobs, move_blocks_before_they_signal) { run("blocks"); }
TEST_P(jobs, survive_floods) { run("flood"); }
TEST_P(jobs, fill_mailboxes) { run("mailboxes"); }
TEST_P(jobs, fail_and_go_on) { run("fiber-exceptions"); }

// Of a user of runtime(argc, argv).
TEST(a_mistyped_flag, ends_in_one_line_with_status_2) {
  const words arguments = {"--strata-workers=0", "leave-mistakes-to-the-runtime"};
  words alone = {launch_test::node_program(), "%m"};
  alone.insert(alone.end(), arguments.begin(), arguments.end());
  command by_itself(alone, {.other = true});
  EXPECT_EQ(by_itself.wait(), 2);
  const std::string line =
      "cluster_program: --strata-workers: '0' is not a whole number from 1 to 4096\n";
  EXPECT_EQ(by_itself.err(), line);
  command job(launch_test::run({"-n", "3"}, arguments));
  EXPECT_EQ(job.wait(), 2);
  const std::size_t first = job.err().find(line);
  EXPECT_NE(first, std::string::npos) << job.err();
  EXPECT_EQ(job.err().find(line, first + 1), std::string::npos) << job.err();
}

class job_over : public launch_test::over_each_transport {};
INSTANTIATE_TEST_SUITE_P(transports, job_over, testing::ValuesIn(transports),
                         launch_test::name_of_text);

TEST_P(job_over, spreads_its_tokens) {
  expect_ok({"-n", "2", "--transport", GetParam()}, {"spread"});
}
TEST_P(job_over, makes_calls_of_scopes_elsewhere) {
  expect_ok({"-n", "2", "--workers", "1", "--transport", GetParam()}, {"scopes"});
}
TEST_P(job_over, takes_a_token_from_under_a_busy_worker) {
  expect_ok({"-n", "2", "--workers", "1", "--transport", GetParam()}, {"lone-tokens"});
}
TEST_P(job_over, runs_what_nobody_waits_for_before_it_is_quiet) {
  expect_ok({"-n", "3", "--workers", "1", "--transport", GetParam()}, {"left-behind"});
}
TEST_P(job_over, makes_calls_on_other_nodes) {
  expect_ok({"-n", "2", "--transport", GetParam()}, {"calls"});
}
TEST_P(job_over, says_by_which_nodes_an_exception_came) {
  expect_ok({"-n", "3", "--transport", GetParam()}, {"exceptions-by-way"});
}
TEST_P(job_over, forgets_a_failure_that_a_task_elsewhere_waited_for) {
  expect_ok({"-n", "2", "--transport", GetParam()}, {"fiber-exceptions-heard-elsewhere"});
}
TEST_P(job_over, tells_of_a_failure_while_a_thread_elsewhere_waits) {
  expect_ok({"-n", "2", "--transport", GetParam()}, {"fiber-exceptions-beside-waits"});
}
TEST_P(job_over, tells_of_a_signal_too_many_from_another_node) {
  expect_ok({"-n", "2", "--transport", GetParam()}, {"signal-too-many"});
}

class balanced_job : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }
};
INSTANTIATE_TEST_SUITE_P(balancers, balanced_job, testing::Values("random", "sender", "informed"),
                         launch_test::name_of_text);

// Also where no other worker of the node ever asks for some.
TEST_P(balanced_job, makes_calls_elsewhere) {
  expect_ok({"-n", "2", "--workers", "1"},
            {std::string("--strata-balancing=") + GetParam(), "calls"});
}

// Each call that is away may hold a stack. A sender that heeded neither what the other has nor how
// many are away had as many as it had time for: hundreds here, and tens of thousands in a longer
// computation.
TEST(job, whose_nodes_send_unasked_holds_few_stacks) {
  command c(launch_test::run({"-n", "2", "--workers", "1"},
                             {"--strata-balancing=sender", "--strata-stats", "calls"}));
  ASSERT_EQ(c.wait(), 0) << c.err();
  constexpr std::size_t calls_away_max = 2 * 16;
  const std::regex stacks("\\n  stacks +([0-9]+)\\n");
  const std::string said = c.err();
  std::size_t nodes = 0;
  for (std::sregex_iterator i(said.begin(), said.end(), stacks); i != std::sregex_iterator(); ++i) {
    EXPECT_LE(std::stoul((*i)[1]), 2 * calls_away_max) << said;
    ++nodes;
  }
  EXPECT_EQ(nodes, 2U) << said;
}

TEST(job, makes_calls_of_scopes_elsewhere) { expect_ok({"-n", "3", "--workers", "2"}, {"scopes"}); }

// Of all nodes of a job that prints its statistics.
std::size_t taken_from_shelves(const std::string& statistics) {
  const std::string before = "taken from others' ";
  std::size_t taken = 0;
  for (std::size_t at = 0; (at = statistics.find(before, at)) != std::string::npos; ++at)
    taken += std::stoul(statistics.substr(at + before.size()));
  return taken;
}

// Without the victim's help, where the nodes share memory. Who asks may be served before it looks
// at a shelf again, all through a short job: then the next job shows it.
TEST(job, takes_tokens_from_a_shelf) {
  constexpr int jobs_max = 200;
  std::size_t taken = 0;
  for (int i = 0; taken == 0 && i < jobs_max; ++i) {
    command c(launch_test::run({"-n", "2", "--workers", "1", "--transport", "shm"},
                               {"--strata-stats", "lone-tokens"}));
    ASSERT_EQ(c.wait(), 0) << c.err();
    ASSERT_EQ(c.out(), "ok\n") << c.err();
    taken = taken_from_shelves(c.err());
  }
  EXPECT_GT(taken, 0U) << "in none of " << jobs_max << " jobs";
}
TEST(job, takes_back_what_nobody_wants) {
  for (const char* const nodes : {"1", "2", "4"}) {
    expect_ok({"-n", nodes, "--workers", "1", "--transport", "shm"}, {"left-behind"});
    expect_ok({"-n", nodes, "--workers", "2", "--transport", "shm"}, {"left-behind"});
  }
}
TEST(job, sends_what_does_not_fit_on_a_shelf) {
  for (const char* const workers : {"1", "2"})
    expect_ok({"-n", "2", "--workers", workers, "--transport", "shm"}, {"large-tokens"});
}
TEST(job, does_without_a_shelf) {
  for (const char* const offered : {"0", "1"})
    expect_ok({"-n", "3", "--transport", "shm"},
              {std::string("--strata-shelf=") + offered, "tokens"});
}
// Each node of a program with random addresses has some of its own.
TEST(job, makes_calls_on_nodes_whose_code_lies_elsewhere) {
  command c(launch_test::run({"-n", "2"}, {"code-elsewhere"}));
  EXPECT_EQ(c.wait(), 0) << c.err();
  if (c.out() == "addresses are fixed here\nok\n") GTEST_SKIP() << "by the system, or by setarch";
  EXPECT_EQ(c.out(), "ok\n") << c.err();
}
TEST(job, brings_exceptions_of_calls_home) { expect_ok({"-n", "2"}, {"exceptions"}); }
TEST(job, refuses_nodes_that_do_not_exist) { expect_ok({"-n", "2"}, {"misuse"}); }
TEST(job, says_where_what_is_used_as_if_it_were_here_lies) { expect_ok({"-n", "3"}, {"misuse"}); }
TEST(job, of_one_node_is_as_without_a_launcher) { expect_ok({"-n", "1"}, {"tokens"}); }
// Its thread computes as well, so it keeps off the cores of other nodes, where there are any.
TEST(job, keeps_its_threads_apart_where_it_has_several_nodes) {
  expect_ok({"-n", "1", "--workers", "1"}, {"any-core"});
  expect_ok({"-n", "2", "--workers", "1", "--bind", "none"}, {"any-core"});
  command two(launch_test::run({"-n", "2", "--workers", "1", "--print-binding"}, {"one-core"}));
  const int status = two.wait();
  if (two.err().find("not bound") != std::string::npos) GTEST_SKIP() << "needs two cores";
  EXPECT_EQ(status, 0) << two.err();
  EXPECT_EQ(two.out(), "ok\n") << two.err();
}
TEST(job, that_does_nothing_ends) {
  for (const char* const nodes : {"1", "2", "8"}) expect_ok({"-n", nodes}, {"nothing"});
}
// The memory of the nodes of a host, and the buffers of connections, are files to the kernel.
TEST(job, names_a_limit_of_file_sizes) {
  for (const char* const transport : {"shm", "tcp"}) {
    command job(launch_test::run({"-n", "2", "--transport", transport}, {"nothing"}),
                {.around = {"prlimit", "--fsize=102400"}});
    EXPECT_EQ(job.wait(), 1) << job.err();
    EXPECT_NE(job.out().find("ulimit -f"), std::string::npos) << job.err();
    EXPECT_EQ(job.processes_left(), 0);
  }
}

#if !defined(STRATA_ASAN) && !defined(STRATA_TSAN)  // which take more addresses than that
TEST(job, names_a_limit_of_addresses) {
  command job(launch_test::run({"-n", "2", "--elastic=4096", "--transport", "shm"}, {"nothing"}),
              {.around = {"prlimit", "--as=3000000000"}});
  EXPECT_EQ(job.wait(), 1) << job.err();
  EXPECT_NE(job.out().find("ulimit -v"), std::string::npos) << job.out() << job.err();
  EXPECT_EQ(job.processes_left(), 0);
}
#endif
#if defined(STRATA_HAS_UCX)
TEST(job, over_ucx_says_that_it_needs_room_in_dev_shm) {
  if (std::system("unshare -m mount -t tmpfs none /dev/shm 2>/dev/null") != 0)
    GTEST_SKIP() << "needs a /dev/shm of its own";
  // UCX loses some memory where it fails.
  command job(launch_test::run({"-n", "2", "--transport", "ucx"}, {"nothing"}),
              {.around = {"env", "LSAN_OPTIONS=detect_leaks=0", "unshare", "-m", "sh", "-c",
                          "mount -t tmpfs -o size=64k none /dev/shm && exec \"$@\"", "sh"}});
  EXPECT_EQ(job.wait(), 1) << job.err();
  EXPECT_NE(job.out().find("/dev/shm"), std::string::npos) << job.out() << job.err();
  EXPECT_EQ(job.processes_left(), 0);
}
#endif

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Programs started by Open MPI's mpirun, without any launcher of ours.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "command.hpp"
#include "four_hosts.hpp"

namespace {

using launch_test::command;
using launch_test::contains;
using launch_test::count_lines;
using launch_test::node_program;
using launch_test::result;
using launch_test::words;

// On machines with few cores, as root in a container, and without a word about either.
words mpirun(const std::string& ranks, const words& more) {
  words all{STRATA_MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", ranks};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

command::setting with(const words& variables = {}) {
  words all = variables;
  all.emplace_back("LSAN_OPTIONS=print_suppressions=0:suppressions=" STRATA_LEAKS_OF_OTHERS);
  return {.variables = all, .input = {}, .around = {}, .other = true};
}

result run_to_end(const words& what, const words& variables = {}) {
  command c(what, with(variables));
  const int status = c.wait();
  return {status, c.out(), c.err()};
}

TEST(mpirun, ranks_are_nodes) {
  for (const std::string ranks : {"2", "4"}) {
    const result r = run_to_end(mpirun(ranks, {node_program(), "count"}));
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out.rfind(ranks + " nodes, node 0: ", 0), 0U) << r.out;
    EXPECT_EQ(count_lines(r.out), 1U) << r.out;
    // They are on one host, so they share memory.
    EXPECT_TRUE(contains(r.out, std::to_string(std::stoi(ranks) - 1) + " by shm")) << r.out;
  }
}

TEST(mpirun, sockets_on_request) {
  const result r = run_to_end(mpirun("3", {node_program(), "--strata-transport", "tcp", "count"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "3 nodes")) << r.out;
  EXPECT_TRUE(contains(r.out, "2 by tcp")) << r.out;
}

#if defined(STRATA_FIB)
TEST(mpirun, applications_run) {
  for (const char* const ranks : {"2", "4"}) {
    const result r = run_to_end(mpirun(ranks, {STRATA_FIB, "25", "--style", "fibers"}));
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out.rfind("fib(25) = 75025 ", 0), 0U) << r.out;
  }
  const result wrong = run_to_end(mpirun("2", {STRATA_FIB, "no-number"}));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "fib: ")) << wrong.err;
}
#endif

#if defined(STRATA_MPI_PROGRAM)
// Twice 1 + ... + n on each of n ranks, and twice the ranks' numbers.
TEST(mpirun, nodes_live_within_an_mpi_program) {
  // MPI unloads what has leaked, so that nobody can say whose it was.
  const words variables{"LSAN_OPTIONS=detect_leaks=0"};
  const result two = run_to_end(mpirun("2", {STRATA_MPI_PROGRAM}), variables);
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(two.out, "all 14, threads 1\n");
  const result four = run_to_end(mpirun("4", {STRATA_MPI_PROGRAM}), variables);
  EXPECT_EQ(four.status, 0) << four.err;
  EXPECT_EQ(four.out, "all 92, threads 1\n");
  // The runtime knows its flags.
  words several = mpirun("2", {STRATA_MPI_PROGRAM, "--strata-workers=3", "--strata-print-binding"});
  const result flags = run_to_end(several, variables);
  EXPECT_EQ(flags.status, 0) << flags.err;
  EXPECT_TRUE(contains(flags.err, "strata: node 0 of 2, 1 by shm, 3 workers on ")) << flags.err;
  EXPECT_EQ(flags.out, "all 14, threads 1\n");
}
#endif

// mpirun reaches other hosts by a command that gets a host's name and words for its shell.
class mpirun_hosts : public launch_test::four_hosts {
 protected:
  mpirun_hosts() {
    // Of the hosts each has a file system of its own, where Open MPI's daemons make their folders.
    std::ofstream(agent_)
        << "#!/bin/sh\nhost=$1\nshift\nexport TMPDIR=\"$0.$host\"\nmkdir -p \"$TMPDIR\"\n"
           "exec ip netns exec \"$host\" sh -c \"$*\"\n";
    std::filesystem::permissions(agent_, std::filesystem::perms::owner_all);
  }
  ~mpirun_hosts() override {
    std::filesystem::remove(agent_);
    for (unsigned host = 0; host < 4; ++host)
      std::filesystem::remove_all(agent_ + "." + address(host));
  }

  result run_on_two(const words& more) {
    words all{"ip",
              "netns",
              "exec",
              hub(),
              STRATA_MPIRUN,
              "--allow-run-as-root",
              "--oversubscribe",
              "--mca",
              "plm_rsh_agent",
              agent_,
              "--host",
              address(1) + ":2," + address(2) + ":2",
              "-n",
              "4"};
    all.insert(all.end(), more.begin(), more.end());
    return run_to_end(all);
  }

 private:
  const std::string agent_ = testing::TempDir() + "strata-agent-" + std::to_string(::getpid());
};

TEST_F(mpirun_hosts, share_memory_within_and_sockets_between) {
  const result r = run_on_two({node_program(), "count"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "4 nodes, node 0: node 0 of 4, 1 by shm, 2 by tcp")) << r.out;
  const result udp = run_on_two({node_program(), "--strata-transport=shm+udp", "count"});
  EXPECT_EQ(udp.status, 0) << udp.err;
  EXPECT_TRUE(contains(udp.out, "4 nodes, node 0: node 0 of 4, 1 by shm, 2 by udp")) << udp.out;
  // The only network that the hosts share, named.
  const result named = run_on_two({node_program(), "--strata-bind-address", "eth0", "count"});
  EXPECT_EQ(named.status, 0) << named.err;
  const result wrong = run_on_two({node_program(), "--strata-bind-address", "eth7", "count"});
  EXPECT_NE(wrong.status, 0);
}

TEST(mpirun, one_rank_is_a_program_of_its_own) {
  const result r = run_to_end(mpirun("1", {node_program(), "count"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.rfind("1 nodes, node 0: ", 0), 0U) << r.out;
}

TEST(mpirun, the_user_may_say_no) {
  const result by_variable =
      run_to_end(mpirun("2", {node_program(), "count"}), {"STRATA_LAUNCH=none"});
  EXPECT_EQ(by_variable.status, 0) << by_variable.err;
  EXPECT_EQ(count_lines(by_variable.out), 2U) << by_variable.out;
  EXPECT_FALSE(contains(by_variable.out, "2 nodes")) << by_variable.out;
  const result by_flag = run_to_end(mpirun("2", {node_program(), "--strata-launch=none", "count"}));
  EXPECT_EQ(count_lines(by_flag.out), 2U) << by_flag.out;
  const result flag_beats_variable = run_to_end(
      mpirun("2", {node_program(), "--strata-launch=auto", "count"}), {"STRATA_LAUNCH=none"});
  EXPECT_EQ(flag_beats_variable.status, 0) << flag_beats_variable.err;
  EXPECT_TRUE(contains(flag_beats_variable.out, "2 nodes")) << flag_beats_variable.out;
}

TEST(mpirun, our_launcher_goes_before) {
  const result r =
      run_to_end(mpirun("1", {STRATA_COMMAND, "run", "-n", "3", node_program(), "second"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.rfind("3 nodes, node 0: ", 0), 0U) << r.out;
  EXPECT_TRUE(contains(r.out, "then 1\n")) << r.out;
}

TEST(mpirun, children_and_later_runtimes_are_no_nodes) {
  const result child = run_to_end(mpirun("2", {node_program(), "child"}));
  EXPECT_EQ(child.status, 0) << child.err;
  EXPECT_EQ(child.out.rfind("2 nodes, node 0: ", 0), 0U) << child.out;
  EXPECT_TRUE(contains(child.out, "\n1 nodes")) << child.out;
  const result second = run_to_end(mpirun("2", {node_program(), "second"}));
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_TRUE(contains(second.out, "then 1\n")) << second.out;
}

TEST(mpirun, node_0_decides_the_status) {
  EXPECT_EQ(run_to_end(mpirun("3", {node_program(), "exit-3"})).status, 3);
}

TEST(mpirun, a_killed_node_is_named_and_ends_the_job) {
  command c(mpirun("3", {node_program(), "%m", "kill"}), with());
  EXPECT_NE(c.wait(), 0);
  // By mpirun, or by node 0 where that has heard of it first.
  const std::string said = c.out() + c.err();
  EXPECT_TRUE(contains(said, "rank 1") || contains(said, "node 1 is lost")) << said;
  c.wait_for_no_process();
}

// As under launchers that let the others go on. (mpirun then calls that a success.)
TEST(mpirun, nodes_notice_a_killed_one_by_themselves) {
  for (const char* const transport : {"auto", "tcp"}) {
    command c(mpirun("3", {"--enable-recovery", node_program(), "%m", "--strata-transport",
                           transport, "kill"}),
              with());
    c.wait();
    EXPECT_TRUE(contains(c.out(), "caught: node 1 is lost: ")) << c.out() << c.err();
    c.wait_for_no_process();
  }
}

TEST(mpirun, a_node_that_does_not_look_up_is_ended) {
  command c(mpirun("2", {"--enable-recovery", node_program(), "%m", "look-away"}), with());
  c.wait();
  EXPECT_TRUE(contains(c.err(), "strata: node 0 is stopped: node 1 is lost: ")) << c.err();
  c.wait_for_no_process();
}

TEST(mpirun, who_does_not_come_is_named) {
  // On a busy machine node 2 may be late as well. Or node 0 is for node 2, which then says so, or
  // ends the job before node 0 can speak.
  constexpr int longest_s = 16;
  for (int limit_s = 1;; limit_s *= 2) {
    const std::string limit = std::to_string(limit_s);
    const result late =
        run_to_end(mpirun("3", {node_program(), "--strata-start-limit-s", limit, "late"}));
    EXPECT_NE(late.status, 0);
    const std::string what = " did not join within " + limit + " s (--strata-start-limit-s sets";
    if (!contains(late.err, "program: node") && limit_s < longest_s) continue;
    EXPECT_TRUE(contains(late.err, "program: node 1" + what) ||
                contains(late.err, "program: nodes 1-2" + what))
        << late.err;
    break;
  }
  const result absent =
      run_to_end(mpirun("2", {node_program(), "absent"}), {"STRATA_START_LIMIT_S=1"});
  EXPECT_NE(absent.status, 0);
  EXPECT_TRUE(contains(absent.err, "strata: node 0 did not join within 1 s")) << absent.err;
}

TEST(mpirun, a_stranger_is_refused) {
  const result r = run_to_end({node_program(), "count"},
                              {"PMIX_RANK=0", "PMIX_NAMESPACE=nowhere", "PMIX_SERVER_URI4=x"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(contains(r.err, "PMIx server does not let this process join: ")) << r.err;
  const result insists = run_to_end({node_program(), "--strata-launch=pmix", "count"});
  EXPECT_EQ(insists.status, 1);
  EXPECT_TRUE(contains(insists.err, "program: launch=pmix, but no job of PMIx")) << insists.err;
}

#if defined(STRATA_FIB)
// What a rank says just before mpirun ends the job for it, mpirun may never pass on: it goes to a
// file.
TEST(mpirun, ranks_of_several_programs_are_no_job) {
  const std::string said = ::testing::TempDir() + "strata-ranks-" + std::to_string(::getpid());
  const auto heard = [&](const words& program) {
    words all{"sh", "-c", "file=$1; shift; exec \"$@\" 2>>\"$file\"", "sh", said};
    all.insert(all.end(), program.begin(), program.end());
    return all;
  };
  // Both speak for themselves: mpirun ends the other when the first has ended.
  words both = mpirun("1", heard({node_program(), "count"}));
  const words other = heard({STRATA_FIB, "20"});
  both.insert(both.end(), {":", "-n", "1"});
  both.insert(both.end(), other.begin(), other.end());
  const result r = run_to_end(both);
  EXPECT_NE(r.status, 0);
  std::ifstream file(said);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(said);
  EXPECT_TRUE(contains(text, ": node 1 runs another build than node 0 (build ids ")) << text;
}
#endif

// Ranks that sleep, whose mpirun gets the signal.
void expect_nothing_left_after(int signal, const std::string& ranks) {
  command c(mpirun(ranks, {node_program(), "%m", "sleep"}), with());
  ASSERT_TRUE(c.wait_for_output("asleep"));
  c.signal(signal);
  EXPECT_NE(c.wait(), 0);
  c.wait_for_no_process();
}

TEST(mpirun, a_signal_ends_the_job) { expect_nothing_left_after(SIGTERM, "2"); }

TEST(mpirun, a_killed_mpirun_leaves_nothing) { expect_nothing_left_after(SIGKILL, "3"); }

TEST(mpirun, info_says_what_it_found) {
  const result r = run_to_end(mpirun("2", {STRATA_COMMAND, "info"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "launch: PMIx, job ")) << r.out;
  EXPECT_TRUE(contains(r.out, ", node 1 of 2, 2 of them on this host\n")) << r.out;
  const result none = run_to_end(mpirun("2", {STRATA_COMMAND, "info"}), {"STRATA_LAUNCH=none"});
  EXPECT_TRUE(contains(none.out, "launch: none (STRATA_LAUNCH=none")) << none.out;
}

}  // namespace

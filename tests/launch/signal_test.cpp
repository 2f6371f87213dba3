// SPDX-License-Identifier: Apache-2.0
// What signals do to a job, and a launcher that dies.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command.hpp"
#include "tests/common/run_in_time.hpp"

namespace {

using launch_test::command;
using launch_test::count_lines;
using launch_test::result;
using launch_test::run;

// Both nodes say that they are there.
void wait_for_both(command& c) {
  ASSERT_TRUE(c.wait_for_output("ready 0\n"));
  ASSERT_TRUE(c.wait_for_output("ready 1\n"));
}

const std::vector<std::string> two{"-n", "2", "--bind", "none", "--workers", "1"};
std::vector<std::string> ready_then(std::vector<std::string> before,
                                    const std::vector<std::string>& after) {
  before.insert(before.end(), {"join", "@0:print:ready 0", "@1:print:ready 1"});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

// What becomes of a job that is sent a signal, both of whose nodes end in time.
result end_by(int signal, const std::vector<std::string>& before) {
  return strata::test::run_in_time([&] {
    command c(run(two, ready_then(before, {"sleep"})));
    wait_for_both(c);
    c.signal(signal);
    const int status = c.wait();
    EXPECT_EQ(c.processes_left(), 0);
    return result{status, c.out(), c.err()};
  });
}

class ends_the_job : public testing::TestWithParam<int> {};

TEST_P(ends_the_job, quietly) {
  const result r = end_by(GetParam(), {});
  EXPECT_EQ(r.status, 128 + GetParam());
  EXPECT_EQ(r.err.find("strata run: node"), std::string::npos) << r.err;
}

INSTANTIATE_TEST_SUITE_P(signals, ends_the_job, testing::Values(SIGINT, SIGTERM, SIGHUP));

// However busy the machine seems to be.
TEST(run_in_time, takes_a_node_that_was_killed_late_for_one_without_a_processor) {
  const std::string late =
      "strata run: node 1 on 127.0.0.1 did not end within 2 s of the signal: killed\n";
  const auto ends_with = [](std::vector<std::string> all) {
    std::size_t runs = 0;
    const result r = strata::test::run_in_time([&] {
      return result{0, {}, all[std::min(runs++, all.size() - 1)]};
    });
    return std::pair(r.err, runs);
  };
  EXPECT_EQ(ends_with({late, ""}), std::pair(std::string(), std::size_t{2}));
  EXPECT_EQ(ends_with({late, late, ""}), std::pair(std::string(), std::size_t{3}));
  EXPECT_EQ(ends_with({"strata run: node 0 failed\n" + late, ""}).second, 1U);
  EXPECT_EQ(ends_with({late}), std::pair(late, std::size_t{5}));  // it is no accident
}

TEST(signals, a_node_may_tidy_up) { EXPECT_EQ(end_by(SIGINT, {"@0:catch:2"}).status, 40); }

TEST(signals, who_ignores_them_is_killed) {
  command c(run(two, ready_then({"ignore:2", "ignore:15"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 130);
  EXPECT_NE(c.err().find("did not end within 2 s of the signal: killed\n"), std::string::npos)
      << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// Whether that took less than the 2 s after which the launcher would act by itself.
bool kill_by(int second) {
  command c(run(two, ready_then({"report:2", "report:15"}, {"sleep"})));
  wait_for_both(c);
  const auto begin = std::chrono::steady_clock::now();
  c.signal(SIGINT);
  if (!c.wait_for_output("S02\nS02\n")) {  // killed before both could say so
    EXPECT_EQ(c.wait(), 130);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << c.err();
    EXPECT_EQ(c.processes_left(), 0);
    return false;
  }
  // Two within 250 ms, by when the launcher has dealt with the first, are one.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  c.signal(second);
  EXPECT_EQ(c.wait(), 130);
  const bool at_once = std::chrono::steady_clock::now() - begin < std::chrono::seconds(2);
  if (at_once) {
    EXPECT_EQ(c.err().find("did not end within"), std::string::npos) << c.err();
  }
  EXPECT_EQ(c.processes_left(), 0);
  return at_once;
}

TEST(signals, a_second_one_kills_who_goes_on_at_once) {
  for (const int second : {SIGINT, SIGTERM}) {
    // A machine may stand still for that long.
    int tries_left = 20;
    while (!kill_by(second) && --tries_left > 0) {
    }
    EXPECT_GT(tries_left, 0) << "never at once";
  }
}

TEST(signals, the_users_own_reach_every_node) {
  command c(run(two, ready_then({"report:10", "report:12"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGUSR1);
  ASSERT_TRUE(c.wait_for_output("S10\nS10\n"));
  c.signal(SIGUSR2);
  ASSERT_TRUE(c.wait_for_output("S12\nS12\n"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143);
}

TEST(signals, a_job_stops_and_continues) {
  command c(run(two, ready_then({"report:18"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(c.pid(), &status, WUNTRACED), c.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  c.signal(SIGCONT);
  ASSERT_TRUE(c.wait_for_output("S18\n"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143);
  EXPECT_EQ(c.processes_left(), 0);
}

// The whole group, as the kernel does where a node reads the terminal in the background.
TEST(signals, time_in_which_others_have_stopped_the_job_does_not_count) {
  const std::chrono::seconds limit(5);
  const char* const stop_all = "[ $STRATA_NODE = 1 ] || kill -STOP 0; exec \"$@\"";
  int status = 1;
  // A node that has no processor may join too late all the same.
  for (int runs = 0; status != 0 && runs < 5; ++runs) {
    const auto begin = std::chrono::steady_clock::now();
    command c({"run", "-n", "2", "--bind", "none", "--workers", "1", "--start-limit", "5", "sh",
               "-c", stop_all, "sh", launch_test::node_program(), "%m", "join", "finish"});
    int stopped = 0;
    if (::waitpid(c.pid(), &stopped, WUNTRACED) != c.pid() || !WIFSTOPPED(stopped)) continue;
    std::this_thread::sleep_until(begin + limit + std::chrono::milliseconds(100));
    ::kill(-c.pid(), SIGCONT);
    status = c.wait();
    EXPECT_EQ(c.processes_left(), 0);
  }
  EXPECT_EQ(status, 0);
}

TEST(signals, a_killed_launcher_leaves_nothing) {
  command c(run(two, ready_then({"ignore:2", "ignore:15"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);  // both outputs have ended: nobody holds them
  c.wait_for_no_process();
}

// What a node has started, in its own session or not, and what that has.
const char* const with_offspring =
    "setsid sh -c 'sleep 1000 & sleep 1000' \"$2\" & sh -c 'sleep 1000; :' \"$2\" & exec \"$@\"";

TEST(signals, a_killed_launcher_leaves_nothing_that_its_nodes_have_started) {
  command c({"run", "-n", "2", "sh", "-c", with_offspring, "sh", launch_test::node_program(), "%m",
             "orphan", "join", "@0:print:ready 0", "@1:print:ready 1", "sleep"});
  wait_for_both(c);
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST(signals, nor_does_one_that_is_killed_with_its_group) {
  command c({"run", "-n", "2", "sh", "-c", with_offspring, "sh", launch_test::node_program(), "%m",
             "orphan", "join", "@0:print:ready 0", "@1:print:ready 1", "sleep"});
  wait_for_both(c);
  ::kill(-c.pid(), SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST(signals, nor_does_one_that_is_stopped) {
  command c(run(two, ready_then({"orphan"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(c.pid(), &status, WUNTRACED), c.pid());
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

// What /proc says under this name; nothing: there is none such.
std::string word_of(pid_t process, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string word; in >> word;) {
    if (word == name && in >> word) return word;
  }
  return {};
}
pid_t only_child_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && word_of(process, "PPid:") == std::to_string(parent)) return process;
  }
  return 0;
}
char state_of(pid_t process) { return word_of(process, "State:")[0]; }
bool is_pending(pid_t process, int signal) {
  return (std::stoull(word_of(process, "ShdPnd:"), nullptr, 16) >> (signal - 1) & 1) != 0;
}

void expect_stopped(pid_t process) {
  char state = state_of(process);
  for (; state != 'T' && state != 'Z' && state != 0; state = state_of(process)) ::sched_yield();
  EXPECT_EQ(state, 'T');
}

// One node that joins and sleeps, and the shell around its launcher. In a session of their own: to
// the kernel, who adopts what a shell leaves behind is as good as that shell in the same session.
// That of a container may be in ours.
class job_in_a_shell : public command {
 public:
  explicit job_in_a_shell(const char* shell)
      : command(run({"-n", "1"}, {"orphan", "pid", "join", "print:ready", "sleep"}),
                {.variables = {}, .input = {}, .around = {"bash", "-c", shell}, .apart = true}) {}
  // And nothing of the job is left.
  void kill_shell() {
    signal(SIGKILL);
    EXPECT_EQ(wait(), 137);
    wait_for_no_process();
  }
};

// What follows the word, of a line that has come.
pid_t number_after(const command& c, const std::string& word) {
  const std::size_t at = c.out().find(word);
  if (at == std::string::npos) throw std::runtime_error("there is no line " + word);
  return std::stoi(c.out().substr(at + word.size()));
}

TEST(signals, nor_does_one_that_is_stopped_when_its_shell_is_killed) {
  // In a script of its own, which is stopped with it: nobody is left who could continue the two. A
  // shell that watches over jobs ends those that are stopped when it executes something else.
  const char* const shell =
      "set -m; sh -c '\"$0\" \"$@\" & echo launcher $! there; kill -STOP $$' \"$0\" \"$@\" & "
      "set +m; exec sleep 1000";
  job_in_a_shell c(shell);
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  ASSERT_TRUE(c.wait_for_output(" there\n"));
  const pid_t launcher = number_after(c, "launcher ");
  const pid_t node = number_after(c, "pid ");
  ::kill(launcher, SIGTSTP);
  expect_stopped(launcher);
  expect_stopped(node);
  c.kill_shell();
}

// As by the kernel, which ends what is stopped so.
TEST(signals, nor_does_a_job_that_others_have_stopped_when_its_shell_is_killed) {
  const char* const shell =
      "set -m; sh -c '\"$0\" \"$@\" & echo launcher $! there; wait' \"$0\" \"$@\" & "
      "set +m; exec sleep 1000";
  job_in_a_shell c(shell);
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  ASSERT_TRUE(c.wait_for_output(" there\n"));
  const pid_t launcher = number_after(c, "launcher ");
  const pid_t node = number_after(c, "pid ");
  ::kill(-::getpgid(launcher), SIGTTIN);
  expect_stopped(launcher);
  expect_stopped(node);
  // What the guard passes on stays with the launcher. With the second it has seen that its node
  // stands.
  const pid_t guard = std::stoi(word_of(node, "PPid:"));
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    ::kill(guard, signal);
    while (!is_pending(launcher, signal)) ::sched_yield();
  }
  c.kill_shell();
}

// The kernel stops no such job that has no guard: what it reads from the terminal ends at once.
TEST(signals, nor_does_one_that_others_stop_when_its_shell_has_ended) {
  const char* const shell =
      "set -m; sh -c '\"$0\" \"$@\" & echo launcher $! there' \"$0\" \"$@\" & "
      "wait; echo alone; set +m; exec sleep 1000";
  job_in_a_shell c(shell);
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  ASSERT_TRUE(c.wait_for_output("alone\n"));
  const pid_t launcher = number_after(c, "launcher ");
  ::kill(-::getpgid(launcher), SIGTTIN);
  for (char state = 'T'; state != 'Z' && state != 0; state = state_of(launcher)) ::sched_yield();
  c.kill_shell();
}

TEST(signals, a_killed_guard_leaves_nothing) {
  command c(run(two, ready_then({"orphan"}, {"@0:parent:9", "sleep"})));
  EXPECT_EQ(c.wait(), 137) << c.err();
  EXPECT_NE(c.err().find("was killed by signal 9 (SIGKILL)"), std::string::npos) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST(signals, of_a_terminal_reach_the_nodes_themselves) {
  command c(run(two, {"group", "join", "finish"}));
  const std::string line = "group " + std::to_string(c.pid()) + "\n";
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), line + line);
}

// As under `ssh -t`, and in a window that runs nothing else.
const command::setting leads_a_terminal{.terminal = true};

// The words of a command before each node's.
launch_test::words two_behind(const launch_test::words& other) {
  launch_test::words all = two;
  all.insert(all.end(), other.begin(), other.end());
  return all;
}

// Linux tells the leader of the session alone.
TEST(signals, a_closed_terminal_is_told_to_the_nodes) {
  const result r = strata::test::run_in_time([] {
    command c(run(two, ready_then({"@0:catch:1"}, {"sleep"})), leads_a_terminal);
    wait_for_both(c);
    c.close_terminal();
    const int status = c.wait();
    return result{status, c.out(), c.err()};
  });
  EXPECT_EQ(r.status, 40);
  EXPECT_FALSE(launch_test::contains(r.err, "did not end")) << r.err;
}

// Held with Ctrl-S, say.
TEST(signals, end_a_job_whose_terminal_nobody_reads) {
  command::setting on_terminal = leads_a_terminal;
  on_terminal.around = {"sh", "-c", "exec \"$@\" >&0", "sh"};
  const result r = strata::test::run_in_time([&] {
    command c(run({"-n", "1", "--bind", "none", "--workers", "1", "--prefix"},
                  {"join", "lines:3000", "complain:written", "sleep"}),
              on_terminal);
    EXPECT_TRUE(c.wait_for_error_output("[0] written\n")) << c.err();
    c.signal(SIGTERM);
    EXPECT_TRUE(c.wait_until_only_its_reader_is_awaited());
    EXPECT_EQ(c.processes_left(), 1);  // the launcher
    c.signal(SIGTERM);
    const int status = c.wait();
    EXPECT_EQ(c.processes_left(), 0);
    return result{status, c.out(), c.err()};
  });
  EXPECT_EQ(r.status, 143);
  EXPECT_FALSE(launch_test::contains(r.err, "did not end")) << r.err;
}

// Signals stay blocked in what is left of it.
TEST(signals, are_not_awaited_of_a_launcher_that_has_died) {
  command c(run({"-n", "1"}, {"join", "print:ready", "sleep"}));
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  c.signal(SIGKILL);
  EXPECT_FALSE(c.wait_until_only_its_reader_is_awaited());
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

// The terminal does not reach those that have begun a group or a session of their own.
TEST(signals, of_a_terminal_reach_nodes_behind_what_leaves_the_group) {
  for (const launch_test::words& wrapper :
       {launch_test::words{"timeout", "1000"}, {"setsid", "-w"}}) {
    const result r = strata::test::run_in_time([&] {
      command c(run(two_behind(wrapper), ready_then({"catch:2"}, {"sleep"})), leads_a_terminal);
      wait_for_both(c);
      c.type("\x03");
      const int status = c.wait();
      return result{status, c.out(), c.err()};
    });
    EXPECT_EQ(r.status, 40) << wrapper[0];
    EXPECT_FALSE(launch_test::contains(r.err, "did not end")) << r.err;
  }
}

// The kernel lets it stop nothing that no shell could continue, and would let it stop the nodes:
// their parent is in another group.
TEST(signals, ctrl_z_stops_no_job_that_nobody_could_continue) {
  // What the nodes have started stops with them.
  const launch_test::words started_by{"sh", "-c", "\"$0\" \"$@\"; exit $?"};
  command c(run(two_behind(started_by), ready_then({"report:18"}, {"sleep"})), leads_a_terminal);
  wait_for_both(c);
  c.type("\x1a");
  ASSERT_TRUE(c.wait_for_output("S18\nS18\n"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143) << c.err();
}

TEST(signals, ctrl_z_stops_a_job_of_a_shell) {
  command::setting of_shell = leads_a_terminal;
  // The shell takes what it complains to for its terminal.
  of_shell.around = {"bash", "-c", "exec 2<>/dev/tty; set -m; \"$0\" \"$@\"; echo stopped $?; fg"};
  command c(run(two, ready_then({"report:18"}, {"sleep"})), of_shell);
  wait_for_both(c);
  c.type("\x1a");
  ASSERT_TRUE(c.wait_for_output("stopped " + std::to_string(128 + SIGSTOP) + "\n")) << c.err();
  ASSERT_TRUE(c.wait_for_output("S18\nS18\n"));
  c.type("\x03");
  EXPECT_EQ(c.wait(), 130) << c.err();
}

// Behind it a command is the first process of a PID namespace.
const launch_test::words apart{"unshare", "-pf", "--mount-proc"};
bool can_be_apart() {
  command probe({"true"}, {.variables = {}, .input = {}, .around = apart, .other = true});
  return probe.wait() == 0;
}

TEST(signals, reach_the_nodes_where_the_launchers_group_is_not_known) {
  // That of unshare itself, which is outside.
  if (!can_be_apart()) GTEST_SKIP() << "needs the right to make namespaces";
  command c(run(two, ready_then({"group", "@0:catch:2"}, {"sleep"})),
            {.variables = {}, .input = {}, .around = apart});
  wait_for_both(c);
  EXPECT_EQ(c.out().find("group 0\n"), 0U) << c.out();
  // As a terminal's: it reaches launcher, guard and nodes.
  ::kill(-c.pid(), SIGINT);
  EXPECT_EQ(c.wait(), 40) << c.err();
  c.wait_for_no_process();
}

// As with Ctrl-C in a container, and its stop.
TEST(signals, end_the_first_process_of_a_container_while_it_waits_for_its_reader) {
  if (!can_be_apart()) GTEST_SKIP() << "needs the right to make namespaces";
  for (const int number : {SIGINT, SIGTERM}) {
    // More than a pipe holds, and less than that for which nodes wait.
    command c(run({"-n", "1", "--prefix"}, {"lines:5000", "complain:done"}), {.around = apart});
    c.leave_output();
    ASSERT_TRUE(c.wait_for_error_output("done\n"));
    const pid_t launcher = only_child_of(c.pid());
    ASSERT_TRUE(command::is_only_its_reader_awaited_by(launcher));
    ::kill(launcher, number);
    // Who reads on lets a launcher end that has not ended yet.
    EXPECT_EQ(c.wait(), 128 + number) << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
}

TEST(signals, a_launcher_reaps_children_that_it_has_not_started) {
  // As the first process of a container gets them.
  command c(run(two, ready_then({}, {"sleep"})),
            {.variables = {},
             .input = {},
             .around = {"sh", "-c",
                        "true & echo early $!; sleep 1000 & echo late $!; exec \"$0\" \"$@\""}});
  wait_for_both(c);
  const pid_t early = number_after(c, "early "), late = number_after(c, "late ");
  ::kill(late, SIGKILL);
  for (const pid_t ended : {early, late}) {
    while (::kill(ended, 0) == 0) ::sched_yield();
  }
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143);
}

TEST(signals, a_killed_launcher_ends_the_lines) {
  // The guard, the node's parent, is stopped until the node has seen its line end.
  command c(run({"-n", "1"}, {"join", "stop-parent", "print:ready", "outlast",
                              "parent:" + std::to_string(SIGCONT), "sleep"}));
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  c.signal(SIGKILL);
  ASSERT_TRUE(c.wait_for_output("line ended\n"));
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST(signals, a_parent_that_ignores_the_ends_of_children_does_no_harm) {
  command c(
      run(two, {"join", "finish"}),
      {.variables = {}, .input = {}, .around = {"sh", "-c", "trap '' CHLD; exec \"$0\" \"$@\""}});
  EXPECT_EQ(c.wait(), 0) << c.err();
}

// A node finds all as the launcher found it.
TEST(signals, ignored_ones_are_ignored_in_the_nodes) {
  const launch_test::words line{"grep", "-E", "Sig(Blk|Ign):", "/proc/self/status"};
  const launch_test::words around{"sh", "-c", "trap '' PIPE CHLD USR1; exec \"$0\" \"$@\""};
  command natively(line, {.around = around, .other = true});
  EXPECT_EQ(natively.wait(), 0);
  launch_test::words run_line{"run"};
  run_line.insert(run_line.end(), line.begin(), line.end());
  command as_node(run_line, {.around = around});
  EXPECT_EQ(as_node.wait(), 0) << as_node.err();
  EXPECT_EQ(as_node.out(), natively.out());
}

TEST(signals, ignored_ones_stay_ignored) {
  command c(run(two, ready_then({"report:1"}, {"@0:parent:1", "@0:parent:10", "sleep"})),
            {.variables = {}, .input = {}, .around = {"nohup"}});
  // SIGUSR1 kills the nodes; SIGHUP, which came first, has not.
  EXPECT_EQ(c.wait(), 138);
  EXPECT_EQ(c.out().find("S01"), std::string::npos);
}

TEST(signals, output_that_nobody_reads_ends_the_job) {
  command c(run({"-n", "2", "--prefix"}, {"join", "lines:100000", "wait"}),
            {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" | head -n 1"}});
  EXPECT_EQ(c.wait(), 0);
  EXPECT_EQ(count_lines(c.out()), 1U);
  c.wait_for_no_process();
}

// Nor is it a success when the nodes have ended before their output could be written.
TEST(signals, output_that_nobody_reads_to_its_end_is_no_success) {
  // More than a pipe holds, and less than that for which nodes wait.
  command c(run({"-n", "1", "--prefix"}, {"lines:5000", "complain:done"}));
  c.leave_output();
  ASSERT_TRUE(c.wait_for_error_output("done\n"));
  // The launcher.
  while (c.processes_left() != 1) ::sched_yield();
  c.close_output();
  EXPECT_EQ(c.wait(), 128 + SIGPIPE) << c.err();
  EXPECT_EQ(c.err(), "[0] done\n");
}

TEST(signals, output_without_room_ends_the_job_with_a_line) {
  // More than the launcher keeps, so it ends a job that would go on; and so little that the job
  // has ended when it is written.
  for (const launch_test::words& actions :
       {launch_test::words{"join", "lines:100000", "wait"}, {"join", "lines:1", "finish"}}) {
    command c(run({"-n", "2", "--prefix"}, actions),
              {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" > /dev/full"}});
    EXPECT_EQ(c.wait(), 2);
    EXPECT_TRUE(launch_test::contains(c.err(), "strata run: standard output: No space left"))
        << c.err();
    EXPECT_TRUE(launch_test::contains(c.err(), "; free some space or write elsewhere\n"));
    c.wait_for_no_process();
  }
}

TEST(signals, output_that_is_closed_is_no_matter_of_space) {
  for (const launch_test::words& line :
       {run({"--prefix", "--bind", "none", "--workers", "1"}, {"join", "lines:1", "finish"}),
        launch_test::words{"info"}}) {
    command c(line, {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" >&-"}});
    EXPECT_EQ(c.wait(), 2);
    EXPECT_EQ(c.err(), "strata " + line[0] + ": standard output: Bad file descriptor\n");
  }
}

}  // namespace

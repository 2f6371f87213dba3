// SPDX-License-Identifier: Apache-2.0
// Nodes on other hosts, which are this machine: scripts stand for ssh, and each host has a loopback
// address of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "command.hpp"
#include "tests/common/run_in_time.hpp"
#include "tools/strata/nodes/agent_messages.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace {

namespace fs = std::filesystem;
using launch_test::command;
using launch_test::count_lines;
using launch_test::result;
using launch_test::run;
using launch_test::words;

class remote : public testing::Test {
 protected:
  remote() {
    std::string pattern = testing::TempDir() + "strata-ssh-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    write_file("ssh", launch_test::ssh_to_this_machine);
  }
  ~remote() override { fs::remove_all(folder); }

  // A script that gets the host and the remote command.
  std::string write(const std::string& name, const std::string& text) const {
    return write_file(name, "#!/bin/sh\n" + text);
  }
  std::string write_file(const std::string& name, const std::string& text) const {
    const std::string path = folder / name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  command::setting over(const std::string& script, const std::string& input = "") const {
    return {
        .variables = {"STRATA_SSH=" + (folder / script).string()}, .input = input, .around = {}};
  }

  words two_hosts(const words& flags, const words& actions) const {
    words all{"-n", "4", "--bind", "none", "--workers", "1", "--host", "127.0.0.2,127.0.0.3"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run(all, actions);
  }

  // Without the remark on too few cores.
  static std::string lines_of(const command& c) {
    std::string kept;
    std::istringstream lines(c.err());
    for (std::string line; std::getline(lines, line);) {
      if (line.find("expect no speed-up") == std::string::npos) kept += line + "\n";
    }
    return kept;
  }

  fs::path folder;
};

TEST_F(remote, a_killed_launcher_leaves_nothing_that_nodes_have_started) {
  command c(two_hosts({}, {"orphan", "join", "@3:print:ready", "sleep"}), over("ssh"));
  ASSERT_TRUE(c.wait_for_output("ready\n")) << c.err();
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST_F(remote, a_killed_agent_leaves_nothing_that_nodes_have_started) {
  command c(two_hosts({}, {"orphan", "join", "@2:grandparent:9", "sleep"}), over("ssh"));
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(lines_of(c), "strata run: host 127.0.0.3: the connection ended; the job is stopped\n");
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, nodes_of_two_hosts_meet) {
  command c(two_hosts({}, {"meet", "describe", "finish"}), over("ssh"));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(lines_of(c), "");
  EXPECT_EQ(count_lines(c.out()), 8U);
  EXPECT_NE(c.out().find("node 1 met 4\n"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("node 3 met 4\n"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("node 1 of 4 host 0 workers 1 cpus at 127.0.0.2 memory yes\n"),
            std::string::npos)
      << c.out();
  EXPECT_NE(c.out().find("node 2 of 4 host 1 workers 1 cpus at 127.0.0.3 memory yes\n"),
            std::string::npos)
      << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, a_hostfile_names_hosts_and_addresses) {
  std::ofstream(folder / "hosts") << "here address=127.0.0.1 slots=1 # this machine\n"
                                     "there address=127.0.0.9 slots=2\n";
  command c(run({"-n", "3", "--hostfile", folder / "hosts"}, {"meet", "describe", "finish"}),
            over("ssh"));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.out().find("node 0 of 3 host 0"), std::string::npos);
  EXPECT_NE(c.out().find("node 2 met 3\n"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("at 127.0.0.9"), std::string::npos) << c.out();
}

TEST_F(remote, folder_and_chosen_variables_go_along) {
  command c(two_hosts({"-x", "STRATA_SSH", "-x", "MINE=a b"},
                      {"join", "@3:variable:MINE", "@3:variable:PWD", "finish"}),
            over("ssh"));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.out().find("MINE=a b\n"), std::string::npos);
}

TEST_F(remote, output_and_prefixes) {
  command c(two_hosts({"--prefix"}, {"join", "lines:500", "@2:complain:oh", "finish"}),
            over("ssh"));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(count_lines(c.out()), 2000U);
  EXPECT_NE(c.out().find("[3] line 499 of node 3"), std::string::npos);
  EXPECT_EQ(lines_of(c), "[2] oh\n");
}

// Of what is written on another host so much that the launcher takes no more while nobody reads,
// and that it fits beside that: 64 KiB, 1 MiB, and 192 KiB at least.
const std::string lines_to_the_brim = "@1:lines:18000";

TEST_F(remote, all_of_a_job_arrives_where_its_output_is_read_late) {
  command c(run({"-n", "2", "--bind", "none", "--workers", "1", "--host", "127.0.0.1,127.0.0.2"},
                {"join", lines_to_the_brim, "@1:complain:written", "@1:lines:50000", "finish"}),
            over("ssh"));
  c.leave_output();
  ASSERT_TRUE(c.wait_for_error_output("written\n")) << c.err();
  EXPECT_EQ(c.wait(), 0);
  EXPECT_EQ(count_lines(c.out()), 68'000U);
  EXPECT_EQ(lines_of(c), "written\n");
}

TEST_F(remote, an_interrupt_ends_a_job_whose_output_nobody_reads) {
  const result r = strata::test::run_in_time([&] {
    command c(run({"-n", "2", "--bind", "none", "--workers", "1", "--host", "127.0.0.1,127.0.0.2"},
                  {"join", lines_to_the_brim, "@1:complain:written", "@1:lines:100000", "sleep"}),
              over("ssh"));
    c.leave_output();
    EXPECT_TRUE(c.wait_for_error_output("written\n")) << c.err();
    c.signal(SIGINT);
    EXPECT_TRUE(c.wait_until_only_its_reader_is_awaited());
    const int status = c.wait();
    return result{status, c.out(), lines_of(c)};
  });
  EXPECT_EQ(r.status, 130);
  EXPECT_EQ(r.err, "written\n");
  EXPECT_GE(count_lines(r.out), 18'000U);
}

TEST_F(remote, many_hosts_are_reached_with_few_open_files) {
  std::string hosts;
  for (int h = 2; h < 32; ++h)
    hosts += (hosts.empty() ? "127.0.0." : ",127.0.0.") + std::to_string(h);
  command::setting how = over("ssh");
  how.around = {"prlimit", "--nofile=100:4096"};
  command c(run({"-n", "30", "--bind", "none", "--workers", "1", "--host", hosts},
                {"join", "@29:print:ok", "finish"}),
            how);
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), "ok\n");
}

TEST_F(remote, input_reaches_node_0_there) {
  std::string much;
  while (much.size() < 1'500'000) much += "a line of input " + std::to_string(much.size()) + "\n";
  command c(two_hosts({}, {"join", "input", "finish"}), over("ssh", much));
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_TRUE(c.out() == much) << c.out().size() << " bytes of " << much.size();
}

// Its node has not asked for any; the launcher reads ahead.
TEST_F(remote, a_job_in_the_background_is_not_stopped_by_what_is_typed_for_others) {
  command::setting of_shell = over("ssh");
  of_shell.terminal = true;
  of_shell.around = {"bash", "-c",
                     "exec 2<>/dev/tty; set -m; \"$0\" \"$@\"; echo stopped; bg; "
                     "until read -t 0; do :; done; echo launcher $(jobs -p %1) there; wait %1"};
  command c(run({"-n", "1", "--host", "127.0.0.2"}, {"report:10", "join", "print:ready", "sleep"}),
            of_shell);
  ASSERT_TRUE(c.wait_for_output("ready\n")) << c.err();
  c.type("\x1a");
  ASSERT_TRUE(c.wait_for_output("stopped\n"));
  c.type("something\n");
  ASSERT_TRUE(c.wait_for_output(" there\n"));
  const std::string word = "launcher ";
  const pid_t launcher = std::stoi(c.out().substr(c.out().find(word) + word.size()));
  // From one that is stopped nothing would come. When the first has come it has seen the input.
  for (const std::string come : {"S10\n", "S10\nS10\n"}) {
    ::kill(launcher, SIGUSR1);
    ASSERT_TRUE(c.wait_for_output(come)) << c.out();
  }
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(c.wait(), 143);
}

TEST_F(remote, input_that_nobody_reads_holds_nothing_up) {
  command c(two_hosts({}, {"join", "finish"}), over("ssh", std::string(1'500'000, 'x')));
  EXPECT_EQ(c.wait(), 0) << c.err();
}

TEST_F(remote, a_node_that_dies_is_named_with_its_host) {
  command c(two_hosts({}, {"join", "@3:raise:9", "wait"}), over("ssh"));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_EQ(lines_of(c),
            "strata run: node 3 on 127.0.0.3 was killed by signal 9 (SIGKILL); the job is "
            "stopped\n");
  EXPECT_EQ(count_lines(c.out()), 3U);
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, a_host_that_is_lost_is_named) {
  command c(two_hosts({}, {"join", "@3:grandparent:9", "wait"}), over("ssh"));
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(lines_of(c), "strata run: host 127.0.0.3: the connection ended; the job is stopped\n");
  EXPECT_NE(c.out().find("node 0: node 2 host 127.0.0.3: the connection ended\n"),
            std::string::npos)
      << c.out();
  c.wait_for_no_process();
}

TEST_F(remote, signals_go_everywhere) {
  command c(two_hosts({}, {"report:10", "join", "@0:print:ready 0", "@3:print:ready 3", "sleep"}),
            over("ssh"));
  ASSERT_TRUE(c.wait_for_output("ready 0\n"));
  ASSERT_TRUE(c.wait_for_output("ready 3\n"));
  c.signal(SIGUSR1);
  ASSERT_TRUE(c.wait_for_output("S10\nS10\nS10\nS10\n"));
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 130);
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, nodes_that_ignore_everything_are_killed) {
  command c(two_hosts({}, {"ignore:15", "join", "@1:raise:9", "sleep"}), over("ssh"));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, a_killed_launcher_leaves_nothing) {
  command c(two_hosts({}, {"ignore:15", "join", "@0:print:ready 0", "@3:print:ready 3", "sleep"}),
            over("ssh"));
  ASSERT_TRUE(c.wait_for_output("ready 0\n"));
  ASSERT_TRUE(c.wait_for_output("ready 3\n"));
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST_F(remote, who_cannot_be_reached_is_named_with_the_last_words_of_ssh) {
  write("asks",
        "echo Warning: new key >&2\n"
        "echo \"$1: Permission denied (publickey,password).\" >&2\nexit 255\n");
  command c(two_hosts({}, {"join"}), over("asks"));
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(lines_of(c).rfind("strata run: host 127.0.0.", 0), 0U);
  EXPECT_NE(lines_of(c).find(": the connection ended: 127.0.0."), std::string::npos) << c.err();
  EXPECT_NE(lines_of(c).find(": Permission denied (publickey,password).; the job is stopped\n"),
            std::string::npos)
      << c.err();
  EXPECT_EQ(count_lines(lines_of(c)), 1U);
}

// What ssh is called with, one word a line.
TEST_F(remote, ssh_never_asks_whatever_else_it_is_told) {
  const fs::path record = folder / "record";
  write("ssh", "printf '%s\\n' \"$@\" > '" + record.string() +
                   "'\nwhile [ \"$1\" != \"${1#-}\" ]; do shift 2; done\nshift\nexec \"$@\"\n");
  const char* const path = std::getenv("PATH");
  struct wish {
    std::string variable, more;
  };
  for (const wish& w :
       {wish{"STRATA_SSH=", ""}, wish{"STRATA_SSH=ssh -p 2222", "-p\n2222\n"},
        // The first value of an option is the one that ssh takes.
        wish{"STRATA_SSH=ssh -o BatchMode=no", "-o\nBatchMode=no\n"},
        wish{"STRATA_SSH=" + (folder / "ssh").string() + " -p 2222", "-p\n2222\n"}}) {
    fs::remove(record);
    command c(
        run({"-n", "2", "--bind", "none", "--workers", "1", "--host", "127.0.0.2"},
            {"join", "finish"}),
        {.variables = {"PATH=" + folder.string() + ":" + (path != nullptr ? path : ""), w.variable},
         .input = {},
         .around = {}});
    EXPECT_EQ(c.wait(), 0) << c.err();
    std::ostringstream given;
    given << std::ifstream(record).rdbuf();
    const std::string expected =
        "-o\nBatchMode=yes\n-o\nControlMaster=no\n" + w.more + "127.0.0.2\n";
    EXPECT_EQ(given.str().substr(0, expected.size()), expected);
  }
}

// Another program knows its options itself.
TEST_F(remote, what_is_not_called_ssh_gets_no_options) {
  write("elsewhere", "[ \"$1\" = 127.0.0.2 ] || exit 3\nshift\nexec \"$@\"\n");
  command c(run({"-n", "2", "--bind", "none", "--workers", "1", "--host", "127.0.0.2"},
                {"join", "finish"}),
            over("elsewhere"));
  EXPECT_EQ(c.wait(), 0) << c.err();
}

TEST_F(remote, a_login_that_talks_is_recognised) {
  for (const std::string greeting : {"Welcome to this machine!", "it's-on"}) {
    write("talks", "shift\necho \"" + greeting + "\"\nexec \"$@\"\n");
    command c(two_hosts({}, {"join"}), over("talks"));
    EXPECT_EQ(c.wait(), 1);
    EXPECT_NE(lines_of(c).find("got '" + greeting + "' in place of an answer"), std::string::npos)
        << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
}

TEST_F(remote, a_host_that_never_answers_is_given_up) {
  write("hangs", "[ \"$1\" = 127.0.0.3 ] && exec sleep 1000\nshift\nexec \"$@\"\n");
  command c(two_hosts({"--start-limit", "0.5"}, {"join"}), over("hangs"));
  EXPECT_EQ(c.wait(), 1);
  // On a busy machine the others may be late as well.
  EXPECT_NE(lines_of(c).find("-3 did not join within 0.5 s"), std::string::npos) << c.err();
  EXPECT_EQ(count_lines(lines_of(c)), 1U) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(remote, a_host_that_never_answers_for_its_only_node_is_given_up) {
  write("hangs", "exec sleep 1000\n");
  command c(run({"--start-limit", "0.5", "--host", "127.0.0.3"}, {"sleep"}), over("hangs"));
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(lines_of(c),
            "strata run: host 127.0.0.3: no answer within 0.5 s (--start-limit sets the limit); "
            "the job is stopped\n");
}

// Nodes that say nothing are known to be there.
TEST_F(remote, an_agent_says_that_it_has_started_the_nodes) {
  strata::launcher::start_request what;
  what.program = strata::launcher::find_program("sleep");
  what.arguments = {"sleep", "1000"};
  what.nodes = {0};
  what.job.host_of = {0};
  what.workers = 1;
  what.bind = false;
  command c({"agent"}, {.variables = {},
                        .input = strata::launcher::pack_start(what),
                        .around = {"sh", "-c", "cat | \"$0\" \"$@\""}});
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(c.out(), strata::launch::pack_frame(strata::launch::frame_kind::alive, {}));
}

TEST_F(remote, a_program_that_is_not_there_is_refused) {
  write("elsewhere", "shift\nmv '" + (folder / "program").string() + "' '" +
                         (folder / "gone").string() + "' 2>/dev/null\nexec \"$@\"\n");
  const std::string program = write("program", "exit 0\n");
  command c({"run", "-n", "2", "--host", "127.0.0.2,127.0.0.3", program}, over("elsewhere"));
  EXPECT_EQ(c.wait(), 2);
  EXPECT_NE(lines_of(c).find(": there is no program " + program), std::string::npos) << c.err();
}

TEST_F(remote, flags_for_one_host_are_refused_for_several) {
  for (const words& flags : {words{"--transport", "shm"}, words{"--bind-address", "127.0.0.1"}}) {
    command c(two_hosts(flags, {"join"}), over("ssh"));
    EXPECT_EQ(c.wait(), 2);
    EXPECT_EQ(count_lines(c.err()), 1U) << c.err();
  }
}

TEST_F(remote, an_agent_alone_believes_nothing) {
  for (const std::string& input :
       {std::string(), std::string("hello"), std::string("SL\x01\x10\xff\xff\xff\xff", 8),
        std::string("SL\x01\x10\x04\x00\x00\x00\xff\xff\xff\xff", 12)}) {
    command c({"agent"},
              {.variables = {}, .input = input, .around = {"sh", "-c", "cat | \"$0\" \"$@\""}});
    EXPECT_EQ(c.wait(), 1);
    EXPECT_EQ(c.out(), "");
  }
  command c({"agent"});
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(c.err(), "strata agent: a line is a pipe or a socket, not a file\n");
}

// What `ps` shows to all, and the system to the same user.
std::string words_of_all_processes() {
  std::ostringstream all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    for (const char* const file : {"cmdline", "environ"})
      all << std::ifstream(entry.path() / file).rdbuf();
    all.clear();  // there was nothing in one of them
  }
  return all.str();
}

std::string bytes_of(const std::string& hexadecimal) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST_F(remote, the_key_is_fresh_for_each_job_and_no_word_of_any_process) {
  std::set<std::string> keys;
  for (int i = 0; i < 2; ++i) {
    command c(
        two_hosts({"-x", "SEEN=seen-by-all"}, {"join", "@0:show-key", "@3:print:ready 3", "sleep"}),
        over("ssh"));
    ASSERT_TRUE(c.wait_for_output(" shown"));
    ASSERT_TRUE(c.wait_for_output("ready 3\n"));
    const std::string key = c.out().substr(c.out().find("key ") + 4, 64);
    keys.insert(key);
    const std::string all = words_of_all_processes();
    EXPECT_NE(all.find("seen-by-all"), std::string::npos) << "looks in the right places";
    EXPECT_EQ(all.find(key), std::string::npos);
    // A word ends at a zero.
    const std::string first = bytes_of(key).substr(0, bytes_of(key).find('\0'));
    if (first.size() >= 8) {
      EXPECT_EQ(all.find(first), std::string::npos);
    }
    c.signal(SIGTERM);
    EXPECT_EQ(c.wait(), 143);
  }
  EXPECT_EQ(keys.size(), 2U);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Nodes that come to a running job and leave it, with real processes and the commands of the user.
#include "elastic.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "os/topology.hpp"

namespace {

namespace fs = std::filesystem;
using launch_test::command;
using launch_test::count_lines;
using launch_test::elastic;
using launch_test::result;
using launch_test::words;

TEST_F(elastic, nodes_come_and_go) {
  open({"-n", "2"}, {"join", "enter", "describe"});
  EXPECT_EQ(members(), "0-1");
  expect_joined("2");
  expect({"join", job.substr(0, 7), "-n", "2"}, 0,
         "node 3 has joined job " + job + "\nnode 4 has joined job " + job + "\n", "");
  EXPECT_EQ(members(), "0-4");
  expect({"leave", job, "2"}, 0, "node 2 has left job " + job + "\n", "");
  EXPECT_EQ(members(), "0-1,3-4");
  expect({"leave", job, "2"}, 1, "", "strata leave: node 2 has left already\n");
  expect({"leave", job, "0"}, 1, "", "strata leave: node 0 cannot leave; the job ends with it\n");
  expect({"leave", job, "9"}, 1, "", "strata leave: there is no node 9\n");
  expect_joined("5");
  end_well();
  EXPECT_NE(job_command->out().find("node 5 of 6 host 0 workers 1 cpus at 127.0.0.1 memory yes\n"),
            std::string::npos)
      << job_command->out();
  expect({"join", job}, 1, "",
         "strata join: no job " + job + " is open; strata jobs lists those that are open\n");
}

TEST_F(elastic, one_node_is_enough_to_begin_with) {
  open({"-n", "1", "--prefix"}, {"join", "enter", "describe"});
  expect_joined("1");
  expect({"leave", job, "1"}, 0, "node 1 has left job " + job + "\n", "");
  end_well();
  EXPECT_NE(
      job_command->out().find("[0] node 0 of 1 host 0 workers 1 cpus at 127.0.0.1 memory yes\n"),
      std::string::npos)
      << job_command->out();
  EXPECT_NE(job_command->out().find("[1] node 1 of 2 host 0"), std::string::npos)
      << job_command->out();
}

TEST_F(elastic, bindings_of_late_nodes_are_printed) {
  open({"--print-binding"}, {"join", "enter"});
  expect({"join", job, "--workers", "3"}, 0, "node 1 has joined job " + job + "\n", "");
  job_command->signal(SIGUSR1);
  EXPECT_EQ(job_command->wait(), 0);
  EXPECT_NE(job_command->err().find("strata run: node 1: 3 workers, not bound\n"),
            std::string::npos)
      << job_command->err();
}

TEST_F(elastic, a_late_node_gets_cores_that_are_left) {
  if (strata::os::choose_workers().workers < 2) GTEST_SKIP() << "one core";
  open({"--bind", "core"}, {"join", "enter", "describe"});
  expect_joined("1");
  expect_joined("2");
  end_well();
  const auto cpu_of = [&](const std::string& node) {
    const std::string before = "node " + node + " of ";
    std::istringstream rest(job_command->out().substr(job_command->out().find(before)));
    std::string line;
    std::getline(rest, line);
    line = line.substr(line.find("cpus") + 4);
    return line.substr(0, line.find(" at "));
  };
  EXPECT_NE(cpu_of("0"), "");
  EXPECT_NE(cpu_of("1"), "");
  EXPECT_NE(cpu_of("0"), cpu_of("1"));
}

TEST_F(elastic, who_is_not_done_yet_stays_for_a_while) {
  open({"-n", "2"}, {"join", "enter"}, "elastic:3");
  expect({"leave", job, "1"}, 0, "node 1 has left job " + job + "\n", "");
  end_well();
}

TEST_F(elastic, numbers_run_out) {
  open({"--elastic=2"}, {"join", "enter"});
  expect_joined("1");
  const result r = ask({"join", job});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err,
            "strata join: all 2 node numbers are used, and none is used twice; strata run "
            "--elastic=MAX sets how many there are\n");
  end_well();
}

TEST_F(elastic, another_build_is_refused) {
  open({}, {"@1:build:other", "join", "enter"});
  const result r = ask({"join", job});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err.rfind("strata join: node 1 runs another build of launch_node than node 0 (", 0),
            0U)
      << r.err;
  expect_joined("2");
  end_well();
}

TEST_F(elastic, a_newcomer_that_dies_costs_the_job_nothing) {
  open({"-n", "2"}, {"@2:raise:9", "@3:exit:4", "join", "@4:raise:11", "enter"});
  expect({"join", job}, 1, "",
         "strata join: node 2 was killed by signal 9 (SIGKILL) before it had joined\n");
  expect({"join", job}, 1, "", "strata join: node 3 ended with status 4 before it had joined\n");
  expect({"join", job}, 1, "",
         "strata join: node 4 was killed by signal 11 (SIGSEGV) before it had joined\n");
  expect_joined("5");
  end_well();
  EXPECT_NE(job_command->out().find("node 1: node 4 was killed by signal 11"), std::string::npos)
      << job_command->out();
}

TEST_F(elastic, a_newcomer_that_does_nothing_is_given_up) {
  const std::string limit = open_with_short_limit({"@1:ignore:15", "@1:sleep", "join", "enter"});
  expect({"join", job}, 1, "",
         "strata join: node 1 did not join within " + limit +
             " (strata run --start-limit sets the limit)\n");
  end_well();
}

TEST_F(elastic, a_job_that_ends_takes_a_newcomer_along) {
  open({}, {"@1:print:here", "@1:sleep", "join", "enter"});
  command joining({"join", job}, here());
  ASSERT_TRUE(job_command->wait_for_output("here\n"));
  end_well();
  EXPECT_EQ(joining.wait(), 1);
  EXPECT_EQ(joining.err(), "strata join: the job is ending\n");
}

TEST_F(elastic, a_late_node_that_is_lost_is_a_lost_node) {
  open({"-n", "2"}, {"join", "enter", "@2:raise:9"});
  const result r = ask({"join", job});
  EXPECT_EQ(r.out, "node 2 has joined job " + job + "\n");
  EXPECT_EQ(job_command->wait(), 137);
  EXPECT_EQ(complaints(),
            "strata run: node 2 was killed by signal 9 (SIGKILL); the job is stopped\n");
  EXPECT_EQ(job_command->processes_left(), 0);
}

TEST_F(elastic, ctrl_c_ends_the_wait_only) {
  open({}, {"@1:print:here", "@1:sleep", "join", "enter"});
  command joining({"join", job}, here());
  ASSERT_TRUE(job_command->wait_for_output("here\n"));
  joining.signal(SIGINT);
  EXPECT_EQ(joining.wait(), 130);
  EXPECT_EQ(joining.err(),
            "strata join: no longer waiting; job " + job + " goes on with what was asked for\n");
  EXPECT_EQ(members(), "0");
  job_command->signal(SIGINT);
  EXPECT_EQ(job_command->wait(), 130);
  EXPECT_EQ(job_command->processes_left(), 0);
  EXPECT_TRUE(fs::is_empty(folder / "strata"));
}

// The nodes have joined all the same.
TEST_F(elastic, a_join_whose_words_go_nowhere_says_why) {
  open({}, {"join", "enter"});
  command::setting nowhere = here();
  nowhere.around = {"sh", "-c", "exec \"$0\" \"$@\" >/dev/full"};
  command joining({"join", job}, nowhere);
  EXPECT_EQ(joining.wait(), 2);
  EXPECT_EQ(joining.err(),
            "strata join: standard output: No space left on device; free some space or write "
            "elsewhere\n");
  // By the signal that any other program gets.
  nowhere.around = {"bash", "-c", "exec 3> >(exec true); wait $!; exec \"$0\" \"$@\" >&3"};
  command again({"join", job}, nowhere);
  EXPECT_EQ(again.wait(), 128 + SIGPIPE);
  EXPECT_EQ(again.err(), "");
  EXPECT_EQ(members(), "0-2");
  end_well();
}

TEST_F(elastic, a_killed_launcher_leaves_no_node_and_a_socket_that_is_removed) {
  open({"-n", "2"}, {"ignore:15", "join", "enter"});
  expect_joined("2");
  job_command->signal(SIGKILL);
  EXPECT_EQ(job_command->wait(), 137);
  job_command->wait_for_no_process();
  EXPECT_TRUE(fs::exists(folder / "strata" / job));
  const result r = ask({"jobs"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out.find(job), std::string::npos) << r.out;
  EXPECT_FALSE(fs::exists(folder / "strata" / job));
}

TEST_F(elastic, nodes_of_another_host_have_memory_of_their_own) {
  open({"-n", "1"}, {"join", "enter", "describe"});
  expect({"join", job, "--host", "127.0.0.2", "-n", "2"}, 0,
         "node 1 has joined job " + job + "\nnode 2 has joined job " + job + "\n", "");
  expect({"join", job, "--host", "127.0.0.2"}, 0, "node 3 has joined job " + job + "\n", "");
  expect({"join", job, "--host", "localhost"}, 0, "node 4 has joined job " + job + "\n", "");
  expect({"leave", job, "1"}, 0, "node 1 has left job " + job + "\n", "");
  expect({"leave", job, "3"}, 0, "node 3 has left job " + job + "\n", "");
  EXPECT_EQ(members(), "0,2,4");
  end_well();
  for (const char* const line : {"node 1 of 2 host 1 workers 1 cpus at 127.0.0.2 memory yes\n",
                                 "node 2 of 3 host 1 workers 1 cpus at 127.0.0.2 memory yes\n",
                                 "node 3 of 4 host 2 workers 1 cpus at 127.0.0.2 memory yes\n",
                                 "node 4 of 5 host 0 workers 1 cpus at 127.0.0.1 memory yes\n"}) {
    EXPECT_NE(job_command->out().find(line), std::string::npos) << job_command->out();
  }
}

TEST_F(elastic, a_newcomer_on_another_host_that_fails_costs_the_job_nothing) {
  open({"-n", "1"}, {"@1:exit:3", "@3:exit:3", "@4:grandparent:9", "@4:sleep", "join", "enter"});
  expect({"join", job, "--host", "127.0.0.2"}, 1, "",
         "strata join: node 1 on 127.0.0.2 ended with status 3 before it had joined\n");
  expect({"join", job, "--host", "127.0.0.2", "-n", "2"}, 1, "node 2 has joined job " + job + "\n",
         "strata join: node 3 on 127.0.0.2 ended with status 3 before it had joined\n");
  expect({"join", job, "--host", "127.0.0.3"}, 1, "",
         "strata join: host 127.0.0.3: the connection ended\n");
  fs::remove(folder / "ssh");
  const result r = ask({"join", job, "--host", "127.0.0.4"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_EQ(members(), "0,2");
  end_well();
}

// The launcher asks for no folder later than at its start.
TEST_F(elastic, a_job_whose_folder_is_removed_goes_on) {
  const std::string gone = folder / "gone";
  fs::create_directory(gone);
  around = {"sh", "-c", "cd \"$0\" && exec \"$@\"", gone};
  open({}, {"join", "enter"});
  around.clear();
  fs::remove(gone);
  expect(
      {"join", job, "--host", "127.0.0.2"}, 1, "",
      "strata join: 127.0.0.2: cannot go to the folder " + gone + ": No such file or directory\n");
  expect({"join", job}, 0, "node 2 has joined job " + job + "\n", "");
  EXPECT_EQ(members(), "0,2");
  end_well();
}

TEST_F(elastic, a_job_that_begins_without_a_folder_stays_here) {
  const std::string gone = folder / "gone";
  fs::create_directory(gone);
  const words without{"sh", "-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\"", gone};
  around = without;
  open({}, {"join", "enter"});
  around.clear();
  const std::string why =
      "cannot find the folder that nodes of other hosts begin in: No such file or directory\n";
  expect({"join", job, "--host", "127.0.0.2"}, 1, "", "strata join: " + why);
  expect_joined("1");
  end_well();
  fs::create_directory(gone);
  around = without;
  expect({"run", "--host", "127.0.0.2", launch_test::node_program(), "join"}, 2, "",
         "strata run: " + why);
}

TEST_F(elastic, other_hosts_are_reached_by_a_launcher_that_is_installed_anew_meanwhile) {
  const fs::path launcher = folder / "launcher";
  fs::copy_file(STRATA_COMMAND, launcher);
  around = {"sh", "-c", "shift && exec \"$0\" \"$@\"", launcher};
  open({}, {"join", "enter"});
  around.clear();
  fs::copy_file(STRATA_COMMAND, folder / "newer");
  fs::rename(folder / "newer", launcher);
  expect({"join", job, "--host", "127.0.0.2"}, 0, "node 1 has joined job " + job + "\n", "");
  end_well();
}

TEST_F(elastic, a_host_that_does_not_answer_is_given_up) {
  std::ofstream(folder / "ssh") << "#!/bin/sh\nexec sleep 1000\n";
  const std::string limit = open_with_short_limit({"join", "enter"});
  expect({"join", job, "--host", "127.0.0.2"}, 1, "",
         "strata join: node 1 on 127.0.0.2 did not join within " + limit +
             " (strata run --start-limit sets the limit)\n");
  end_well();
}

TEST_F(elastic, a_host_that_cannot_be_reached_from_the_nodes_is_refused) {
  open({}, {"join", "enter"});
  expect({"join", job, "--host", "192.0.2.1"}, 1, "",
         "strata join: nodes of the job listen on 127.0.0.1, those on 192.0.2.1 would on "
         "192.0.2.1: strata run --bind-address or --host says where they listen\n");
  end_well();
}

// More than the numbers that there are unless one says how many.
TEST_F(elastic, a_job_may_begin_with_any_number_of_nodes) {
  const result r = ask({"run", "--elastic", "-n", "65", "--bind", "none", "--workers", "1",
                        launch_test::node_program(), "join", "finish"});
  EXPECT_EQ(r.status, 0) << r.err;
}

TEST_F(elastic, jobs_are_found_by_their_first_digits) {
  expect({"join", "0"}, 2, "",
         "strata join: '0' is not a job, nor the first digits of one; strata jobs lists those that "
         "are open\n");
  expect({"leave", "../x", "1"}, 2, "",
         "strata leave: '../x' is not a job, nor the first digits of one; strata jobs lists those "
         "that are open\n");
  open({}, {"join", "enter"});
  // Another one that begins alike: the same job under a second name.
  fs::create_hard_link(folder / "strata" / job, folder / "strata" / (job.substr(0, 4) + "wxyz"));
  const std::string twin = job.substr(0, 7) + (job[7] == '0' ? '1' : '0');
  fs::create_hard_link(folder / "strata" / job, folder / "strata" / twin);
  const result r = ask({"join", job.substr(0, 4)});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find(job.substr(0, 4) + " may be any of "), std::string::npos) << r.err;
  fs::remove(folder / "strata" / twin);
  fs::remove(folder / "strata" / (job.substr(0, 4) + "wxyz"));
  expect({"join", job.substr(0, 4)}, 0, "node 1 has joined job " + job + "\n", "");
  end_well();
}

}  // namespace

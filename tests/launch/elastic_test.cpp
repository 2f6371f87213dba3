// SPDX-License-Identifier: Apache-2.0
// Nodes that come to a running job and leave it, with real processes and the commands of the user.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "command.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#include "tests/common/denied_calls.hpp"
#include "tools/strata/control/control_messages.hpp"
#include "tools/strata/control/job_folder.hpp"

namespace {

namespace fs = std::filesystem;
using launch_test::command;
using launch_test::count_lines;
using launch_test::result;
using launch_test::words;

// A job of this test, and the commands that are about it. It ends at SIGUSR1.
class elastic : public testing::Test {
 protected:
  elastic() {
    std::string pattern = testing::TempDir() + "strata-elastic-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    std::ofstream(folder / "ssh") << launch_test::ssh_to_this_machine;
    fs::permissions(folder / "ssh", fs::perms::owner_all);
  }
  ~elastic() override {
    job_command.reset();
    fs::remove_all(folder);
  }

  [[nodiscard]] command::setting here() const {
    return {.variables = {"XDG_RUNTIME_DIR=" + folder.string(),
                          "STRATA_SSH=" + (folder / "ssh").string()},
            .input = {},
            .around = around};
  }
  // Its nodes do `actions` between the start and their part in the job.
  void open(const words& flags, const words& actions, const std::string& last = "elastic") {
    ASSERT_TRUE(try_to_open(flags, actions, last)) << job_command->err();
  }
  // False if it ends before.
  bool try_to_open(const words& flags, const words& actions, const std::string& last = "elastic") {
    words all{"--elastic", "--bind", "none", "--workers", "1"};
    all.insert(all.end(), flags.begin(), flags.end());
    words what{"report:10"};
    what.insert(what.end(), actions.begin(), actions.end());
    what.push_back(last);
    job_command = std::make_unique<command>(launch_test::run(all, what), here());
    const std::string before = " is open: strata join ";
    if (!job_command->wait_for_error_output(before)) return false;
    if (!job_command->wait_for_error_output("\n")) return false;
    const std::string& said = job_command->err();
    job = said.substr(said.find(before) + before.size(), 8);
    return true;
  }
  // With a limit for who joins that the tests wait for: short, but as long as node 0 takes for it
  // on a busy machine. As it is said.
  std::string open_with_short_limit(const words& actions) {
    for (int limit_s = 3;; limit_s *= 2) {
      const std::string limit = std::to_string(limit_s);
      if (try_to_open({"--start-limit", limit}, actions)) return limit + " s";
      const std::string late = "node 0 did not join within " + limit + " s";
      if (job_command->err().find(late) == std::string::npos)
        throw std::runtime_error("no job is open: " + job_command->err());
    }
  }
  result ask(const words& what) const {
    command c(what, here());
    const int status = c.wait();
    return {status, c.out(), c.err()};
  }
  void expect(const words& what, int status, const std::string& out, const std::string& err) const {
    const result r = ask(what);
    EXPECT_EQ(r.status, status) << r.err;
    EXPECT_EQ(r.out, out);
    EXPECT_EQ(r.err, err);
  }
  void expect_joined(const std::string& node) const {
    expect({"join", job}, 0, "node " + node + " has joined job " + job + "\n", "");
  }
  // What `strata jobs` says of the nodes. It waits 2 s for a launcher, which may not have been
  // running for so long: then it is asked again.
  [[nodiscard]] std::string members() const {
    std::string all;
    do {
      all = ask({"jobs"}).out;
    } while (all.find(job + "  its launcher does not answer\n") != std::string::npos);
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string name, launcher, nodes, program;
      if (fields >> name >> launcher >> nodes >> program && name == job) return nodes;
    }
    return "none";
  }
  // What the job wrote, without remarks on too few cores and the line that says that it is open.
  [[nodiscard]] std::string complaints() const {
    std::string kept;
    std::istringstream lines(job_command->err());
    for (std::string line; std::getline(lines, line);) {
      if (line.find("expect no speed-up") == std::string::npos &&
          line.find(" is open: ") == std::string::npos) {
        kept += line + "\n";
      }
    }
    return kept;
  }
  void end_well() {
    job_command->signal(SIGUSR1);
    EXPECT_EQ(job_command->wait(), 0);
    EXPECT_EQ(complaints(), "");
    EXPECT_EQ(job_command->processes_left(), 0);
    EXPECT_TRUE(fs::is_empty(folder / "strata"));
  }
  // Connected as anybody could be.
  [[nodiscard]] sockaddr_un address_of(const std::string& name) const {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    const std::string path = folder / "strata" / name;
    path.copy(where.sun_path, sizeof where.sun_path - 1);
    return where;
  }
  // Of a launcher that is stopped.
  [[nodiscard]] int deaf_socket(const std::string& name) const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un where = address_of(name);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    EXPECT_EQ(::listen(fd, 16), 0);
    return fd;
  }
  [[nodiscard]] int raw_connection() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un where = address_of(job);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) return fd;
    ::close(fd);
    return -1;
  }
  // Sends this and reads to the end.
  [[nodiscard]] std::string answer_to(const std::string& bytes) const {
    const int fd = raw_connection();
    if (fd < 0) return "no connection";
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string answer;
    for (char c = 0; ::recv(fd, &c, 1, 0) == 1;) answer += c;
    ::close(fd);
    return answer;
  }

  fs::path folder;
  words around{};  // what runs the commands
  std::string job;
  std::unique_ptr<command> job_command;
};

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

TEST_F(elastic, nonsense_is_not_answered) {
  namespace launcher = strata::launcher;
  open({}, {"join", "enter"});
  const std::string header("SL", 2);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\0", 1),
        launcher::pack_frame(launcher::frame_kind::ask_join, "x"),
        launcher::pack_frame(launcher::frame_kind::start, std::string(3000, 'x')),
        launcher::pack_frame(launcher::frame_kind::ask_leave, std::string(5000, 'x')),
        launcher::pack_ask_join({.nodes = 100'000}),
        launcher::pack_ask_join({.host = "-oProxy=x"})}) {
    EXPECT_EQ(answer_to(bytes), "");
  }
  // A request is answered once; what follows ends the line.
  EXPECT_NE(
      answer_to(launcher::pack_ask_status() + launcher::pack_ask_status()).find("launch_node"),
      std::string::npos);
  EXPECT_NE(
      answer_to(launcher::pack_ask_join({.host = "b", .address = "b"}) + "x").find("no address"),
      std::string::npos);
  expect_joined("1");
  end_well();
}

TEST_F(elastic, silent_strangers_hold_nobody_up) {
  open({}, {"join", "enter"});
  std::vector<int> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(raw_connection());
  expect_joined("1");
  EXPECT_EQ(members(), "0-1");
  for (const int fd : silent) ::close(fd);
  end_well();
}

TEST_F(elastic, a_launcher_that_does_not_answer_is_listed) {
  open({}, {"join", "enter"});
  job_command->signal(SIGSTOP);
  const result r = ask({"jobs"});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.out.find(job + "  its launcher does not answer\n"), std::string::npos) << r.out;
  job_command->signal(SIGCONT);
  expect_joined("1");
  end_well();
}

// Three of them take longer than a launcher waits to be asked.
TEST_F(elastic, a_job_is_listed_behind_others_whose_launchers_do_not_answer) {
  open({}, {"join", "enter"});
  const std::vector<std::string> names = {"00000000", "00000001", "00000002"};
  std::vector<int> deaf;
  for (const std::string& name : names) deaf.push_back(deaf_socket(name));
  const result r = ask({"jobs"});
  EXPECT_EQ(r.status, 0);
  for (const std::string& name : names)
    EXPECT_NE(r.out.find(name + "  its launcher does not answer\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\n" + job + "  "), std::string::npos) << r.out;
  for (const int fd : deaf) ::close(fd);
  for (const std::string& name : names) fs::remove(folder / "strata" / name);
  expect_joined("1");
  end_well();
}

TEST_F(elastic, another_user_is_not_heard) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  open({}, {"join", "enter"});
  // As if the folder were no protection.
  for (const fs::path& path : {folder, folder / "strata", folder / "strata" / job}) {
    fs::permissions(path, fs::perms::all);
  }
  const std::string request = strata::launcher::pack_ask_status();
  constexpr int cannot_enter = 4;
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    if (raw_connection() < 0 && errno == EACCES) ::_exit(cannot_enter);
    ::_exit(answer_to(request).empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  const bool is_kept_out = WIFEXITED(status) && WEXITSTATUS(status) == cannot_enter;
  EXPECT_TRUE(is_kept_out || status == 0) << status;
  EXPECT_FALSE(answer_to(request).empty());
  // The commands do not trust such a folder.
  EXPECT_EQ(ask({"jobs"}).status, 2);
  fs::permissions(folder / "strata", fs::perms::owner_all);
  end_well();
  if (is_kept_out) GTEST_SKIP() << "another user may not enter TMPDIR";
}

TEST_F(elastic, a_folder_that_is_open_to_others_is_refused) {
  fs::create_directory(folder / "strata");
  fs::permissions(folder / "strata", fs::perms::owner_all | fs::perms::group_exec);
  const result r = ask({"run", "--elastic", launch_test::node_program(), "join"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_NE(r.err.find("mode 0700"), std::string::npos) << r.err;
}

// Anybody can take the name of the folder that is used where XDG_RUNTIME_DIR is not set.
TEST_F(elastic, a_folder_under_tmp_that_is_somebody_elses_is_passed_over) {
  const std::string user = std::to_string(1'000'000 + ::getpid());
  command::setting as_user = here();
  as_user.around = {"unshare", "--map-user=" + user};
  as_user.other = true;
  command probe({"true"}, as_user);
  if (probe.wait() != 0) GTEST_SKIP() << "needs the right to make namespaces: " << probe.err();
  as_user.other = false;
  const fs::path taken = "/tmp/strata-" + user;
  std::ofstream(taken) << "";
  command passes_over({"jobs"}, as_user);
  EXPECT_EQ(passes_over.wait(), 0) << passes_over.err();
  EXPECT_EQ(passes_over.err(), "");
  as_user.variables = {"XDG_RUNTIME_DIR="};
  command has_no_other({"jobs"}, as_user);
  EXPECT_EQ(has_no_other.wait(), 2);
  EXPECT_EQ(count_lines(has_no_other.err()), 1U) << has_no_other.err();
  fs::remove(taken);
}

// As after `su` without a login: the variable is still the other user's.
TEST_F(elastic, a_runtime_folder_of_somebody_else_is_not_used) {
  const std::string user = std::to_string(2'000'000 + ::getpid());
  const fs::path others = folder / "others", own = "/tmp/strata-" + user;
  fs::create_directory(others);
  fs::permissions(others, fs::perms::all);
  if (::chown(others.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give it away";
  command::setting as_user{.variables = {"XDG_RUNTIME_DIR=" + others.string()},
                           .around = {"unshare", "--map-user=" + user},
                           .other = true};
  command probe({"true"}, as_user);
  if (probe.wait() != 0) GTEST_SKIP() << "needs the right to make namespaces: " << probe.err();
  as_user.other = false;
  command job_of_user(launch_test::run({"--elastic"}, {"join", "finish"}), as_user);
  EXPECT_EQ(job_of_user.wait(), 0) << job_of_user.err();
  EXPECT_TRUE(fs::is_empty(others));
  EXPECT_TRUE(fs::is_directory(own));
  fs::remove_all(own);
}

// NFS, for one; and containers that are kept from new calls.
TEST_F(elastic, a_system_that_cannot_rename_with_care_will_do) {
  ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  bool denied = false;
  const auto listen_as = [&](const char* name, unsigned code) {
    denied = strata::test::deny_calls({SYS_renameat2}, code);
    if (!denied) return;
    const auto place = strata::launcher::job_folder::create();
    const strata::os::descriptor one = place.listen(name);
    EXPECT_EQ(place.jobs(), words{name});
    EXPECT_THROW((void)place.listen(name), strata::error);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "strata"), {}), 1);
    fs::remove(folder / "strata" / name);
  };
  std::thread(listen_as, "0123abcd", EINVAL).join();
  std::thread(listen_as, "4567abcd", EPERM).join();
  ::unsetenv("XDG_RUNTIME_DIR");
  if (!denied) GTEST_SKIP() << "no filters of system calls here";
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

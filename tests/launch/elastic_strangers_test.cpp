// SPDX-License-Identifier: Apache-2.0
// Who speaks to the launcher of a job that nodes may come to, and in whose folder it is found.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "elastic.hpp"
#include "os/descriptor.hpp"
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

class elastic_strangers : public launch_test::elastic {
 protected:
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
};

TEST_F(elastic_strangers, nonsense_is_not_answered) {
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

TEST_F(elastic_strangers, silent_strangers_hold_nobody_up) {
  open({}, {"join", "enter"});
  std::vector<int> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(raw_connection());
  expect_joined("1");
  EXPECT_EQ(members(), "0-1");
  for (const int fd : silent) ::close(fd);
  end_well();
}

TEST_F(elastic_strangers, a_launcher_that_does_not_answer_is_listed) {
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
TEST_F(elastic_strangers, a_job_is_listed_behind_others_whose_launchers_do_not_answer) {
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

TEST_F(elastic_strangers, another_user_is_not_heard) {
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

TEST_F(elastic_strangers, a_folder_that_is_open_to_others_is_refused) {
  fs::create_directory(folder / "strata");
  fs::permissions(folder / "strata", fs::perms::owner_all | fs::perms::group_exec);
  const result r = ask({"run", "--elastic", launch_test::node_program(), "join"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_NE(r.err.find("mode 0700"), std::string::npos) << r.err;
}

// Anybody can take the name of the folder that is used where XDG_RUNTIME_DIR is not set.
TEST_F(elastic_strangers, a_folder_under_tmp_that_is_somebody_elses_is_passed_over) {
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
TEST_F(elastic_strangers, a_runtime_folder_of_somebody_else_is_not_used) {
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
TEST_F(elastic_strangers, a_system_that_cannot_rename_with_care_will_do) {
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

}  // namespace

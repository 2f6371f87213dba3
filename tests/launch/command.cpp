// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "strata/detail/cpu.hpp"

extern char** environ;

namespace launch_test {

namespace {

std::vector<char*> pointers(words& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Ours, without what would reach into a job.
words clean_environment(const words& more) {
  words result = more;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, 7) != "STRATA_") result.emplace_back(*entry);
  }
#if defined(STRATA_TSAN)
  // UCX patches madvise(), which a thread calls when ThreadSanitizer has taken leave of it already.
  result.emplace_back("UCX_MEM_MMAP_HOOK_MODE=none");
#endif
  return result;
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return ends;
}

// The end of a new terminal at which a user sits.
int make_terminal() {
  const int fd = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || ::grantpt(fd) != 0 || ::unlockpt(fd) != 0) throw std::runtime_error("no terminal");
  return fd;
}

}  // namespace

std::string node_program() { return STRATA_LAUNCH_NODE; }

words run(const words& flags, const words& actions) {
  words line{"run"};
  line.insert(line.end(), flags.begin(), flags.end());
  line.insert(line.end(), {node_program(), "%m"});
  line.insert(line.end(), actions.begin(), actions.end());
  return line;
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_ok(const words& line, const command::setting& how) {
  command c(line, how);
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), "ok\n") << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

command::command(words line) : command(std::move(line), setting()) {}

command::command(words line, const setting& how)
    : mark_("marker-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device()())) {
  std::replace(line.begin(), line.end(), std::string("%m"), mark_);
  // Nothing stays of it when the test crashes, or is killed: without the launcher, jobs end. It is
  // the end of the thread that makes the command.
  words all = {"setpriv", "--pdeathsig", "KILL"};
  all.insert(all.end(), how.around.begin(), how.around.end());
  if (!how.other) all.emplace_back(STRATA_COMMAND);
  all.insert(all.end(), line.begin(), line.end());
  words variables = clean_environment(how.variables);

  std::FILE* const input = std::tmpfile();
  std::fwrite(how.input.data(), 1, how.input.size(), input);
  std::rewind(input);
  const auto out = make_pipe();
  const auto err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (how.terminal) {
    terminal_fd_ = make_terminal();
    // Who leads a session without a terminal gets the first one that it opens.
    posix_spawn_file_actions_addopen(&actions, 0, ::ptsname(terminal_fd_), O_RDWR, 0);
  } else {
    posix_spawn_file_actions_adddup2(&actions, ::fileno(input), 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  // As from a shell, also when these tests run in the background; a group of its own, so that
  // nothing reaches the tests.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP})
    sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const int apart = how.terminal || how.apart ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | apart));
  const int error = ::posix_spawnp(&pid_, all[0].c_str(), &actions, &attributes,
                                   pointers(all).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  std::fclose(input);
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
  if (error != 0) throw std::runtime_error("cannot start " + all[0]);
}

command::~command() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_fd_, err_fd_, terminal_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

void command::close_output() {
  ::close(out_fd_);
  out_fd_ = -1;
}

bool command::read_some() {
  std::array<pollfd, 2> events{pollfd{output_left_ ? -1 : out_fd_, POLLIN, 0},
                               pollfd{err_fd_, POLLIN, 0}};
  if (events[0].fd < 0 && events[1].fd < 0) return false;
  if (::poll(events.data(), events.size(), -1) < 0) return true;
  const auto take = [](const pollfd& event, int& fd, std::string& text) {
    if (event.revents == 0) return;
    std::array<char, 65536> block;
    const ssize_t bytes = ::read(fd, block.data(), block.size());
    if (bytes > 0) text.append(block.data(), static_cast<std::size_t>(bytes));
    if (bytes == 0) {
      ::close(fd);
      fd = -1;
    }
  };
  take(events[0], out_fd_, out_);
  take(events[1], err_fd_, err_);
  return true;
}

bool command::wait_for_output(const std::string& text) {
  while (out_.find(text) == std::string::npos) {
    if (out_fd_ < 0 || !read_some()) return false;
  }
  return true;
}

bool command::wait_for_error_output(const std::string& text) {
  while (!contains(err_, text)) {
    if (err_fd_ < 0 || !read_some()) return false;
  }
  return true;
}

bool command::is_only_its_reader_awaited_by(pid_t launcher) {
  for (;; ::sched_yield()) {
    std::ifstream status("/proc/" + std::to_string(launcher) + "/status");
    std::string word, state;
    std::uint64_t blocked = 0;
    while (status >> word && word != "State:") {
    }
    status >> state;
    while (status >> word && word != "SigBlk:") {
    }
    // What is left of the dead keeps what they had blocked.
    if (!(status >> std::hex >> blocked) || state == "Z") return false;
    if ((blocked & 1U << (SIGINT - 1)) == 0) return true;
  }
}

void command::signal(int number) const { ::kill(pid_, number); }

void command::type(const std::string& keys) const {
  (void)!::write(terminal_fd_, keys.data(), keys.size());
}

void command::close_terminal() {
  ::close(terminal_fd_);
  terminal_fd_ = -1;
}

int command::wait() {
  output_left_ = false;
  while (read_some()) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int command::processes_left() const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    std::ostringstream line;
    // Does not throw when the process ends meanwhile, as the stream's iterators do.
    line << in.rdbuf();
    if (line.str().find(mark_) != std::string::npos) ++count;
  }
  return count;
}

void command::wait_for_no_process() const {
  while (processes_left() != 0) ::sched_yield();
}

}  // namespace launch_test

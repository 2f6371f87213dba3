// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/start_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

#include "os/descriptor.hpp"

namespace strata::launcher {

namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// What failed in the child before it became the program.
struct child_failure {
  int code;
  bool in_directory;
};

[[noreturn]] void fail(int report, bool in_directory) {
  const child_failure failure{errno, in_directory};
  (void)!::write(report, &failure, sizeof failure);
  ::_exit(127);
}

// Above all numbers that are handed out, so that none is overwritten before its turn.
int moved_up(int fd, std::span<const handed_over> handed) {
  int lowest = 3;
  for (const handed_over& h : handed) lowest = std::max(lowest, h.number + 1);
  return ::fcntl(fd, F_DUPFD_CLOEXEC, lowest);
}

void take(std::span<const handed_over> handed, int report) {
  std::vector<int> moved;
  for (const handed_over& h : handed) moved.push_back(moved_up(h.from, handed));
  for (std::size_t i = 0; i < handed.size(); ++i) {
    if (moved[i] < 0 || ::dup2(moved[i], handed[i].number) < 0) fail(report, false);
  }
}

[[noreturn]] void become(const child_request& what, const inherited_state& inherited, pid_t parent,
                         std::span<const handed_over> handed, pid_t group, int report,
                         char* const* argv, char* const* envp) {
  report = moved_up(report, handed);
  if (what.own_session) {
    ::setsid();
  } else if (group != 0 && ::setpgid(0, group) != 0) {
    fail(report, false);
  }
  // Our parent may have ended before the kernel knew that we want to follow it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  take(handed, report);
  if (!what.directory.empty() && ::chdir(what.directory.c_str()) != 0) fail(report, true);
  inherited.restore();
  ::execve(what.program.c_str(), argv, envp);
  fail(report, false);
}

void continue_if_stopped(pid_t child) {
  siginfo_t seen{};
  const int failed = ::waitid(P_PID, static_cast<id_t>(child), &seen, WSTOPPED | WNOHANG | WNOWAIT);
  if (failed == 0 && seen.si_pid == child) ::kill(child, SIGCONT);
}

// Returns when the program has taken over, which closes the pipe, or when there will be none. The
// child may be stopped before that: by Ctrl-Z, say, in the terminal's group and taking signals. Who
// would continue it waits for us, and has what stops the job to deal with after that.
std::optional<child_failure> wait_for_program(pid_t child, int report) {
  constexpr int look_ms = 20;
  pollfd event{report, POLLIN, 0};
  while (::poll(&event, 1, look_ms) <= 0) continue_if_stopped(child);
  child_failure failure{};
  ssize_t bytes = 0;
  do {
    bytes = ::read(report, &failure, sizeof failure);
  } while (bytes < 0 && errno == EINTR);
  if (bytes != sizeof failure) return std::nullopt;
  return failure;
}

}  // namespace

started_process start_process(const child_request& what, const inherited_state& inherited,
                              std::span<const handed_over> handed, pid_t group) {
  const std::vector<char*> argv = pointers(what.arguments);
  const std::vector<char*> envp = pointers(what.environment);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {0, errno, false};
  const os::descriptor reading(ends[0]);
  os::descriptor writing(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {0, errno, false};
  if (pid == 0) {
    become(what, inherited, parent, handed, group, writing.get(), argv.data(), envp.data());
  }
  writing.reset();
  const std::optional<child_failure> failure = wait_for_program(pid, reading.get());
  if (!failure) return {pid, 0, false};
  ::waitpid(pid, nullptr, 0);
  return {0, failure->code, failure->in_directory};
}

bool was_started_by_launcher() {
  // The kernel keeps it over execve(), and clears it in a child.
  int at_end_of_parent = 0;
  return ::prctl(PR_GET_PDEATHSIG, &at_end_of_parent) == 0 && at_end_of_parent == SIGKILL;
}

}  // namespace strata::launcher

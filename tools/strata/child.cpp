// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/child.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errno_error.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"

extern char** environ;

namespace strata::launch {

inherited_state::inherited_state() {
  // A closed standard stream would give its number to a line or a log.
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) throw errno_error("cannot open /dev/null", errno);
    if (fd > 2) {
      ::close(fd);
      break;
    }
    ::fcntl(fd, F_SETFD, 0);
  }
  sigprocmask(SIG_SETMASK, nullptr, &mask_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_action_);
  // Ignored, it would make the ends of our children unknowable.
  std::signal(SIGCHLD, SIG_DFL);
  getrlimit(RLIMIT_NOFILE, &files_);
}

bool inherited_state::ignored(int signal) const {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void inherited_state::restore() const noexcept {
  sigaction(SIGPIPE, &pipe_action_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
  setrlimit(RLIMIT_NOFILE, &files_);
}

void inherited_state::make_room(std::size_t count) {
  constexpr std::size_t own = 64;
  const rlim_t wanted = count + own;
  if (wanted <= files_.rlim_cur) return;
  if (wanted > files_.rlim_max) {
    throw user_error("this needs " + std::to_string(wanted) + " open files, and the limit is " +
                     std::to_string(files_.rlim_max) + "; raise it with ulimit -Hn");
  }
  const rlimit raised{wanted, files_.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0) throw errno_error("cannot open more files", errno);
}

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

[[noreturn]] void become(const child_request& what, const inherited_state& inherited, pid_t parent,
                         int report, char* const* argv, char* const* envp) {
  if (what.own_session) ::setsid();
  // Our parent may have ended before the kernel knew that we want to follow it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  // All of the three are above 2, so that none is overwritten before its turn.
  if (what.in >= 0 && ::dup2(what.in, 0) < 0) fail(report, false);
  if (what.out >= 0 && ::dup2(what.out, 1) < 0) fail(report, false);
  if (what.err >= 0 && ::dup2(what.err, 2) < 0) fail(report, false);
  for (const int fd : what.keep) {
    if (::fcntl(fd, F_SETFD, 0) != 0) fail(report, false);
  }
  if (!what.directory.empty() && ::chdir(what.directory.c_str()) != 0) fail(report, true);
  inherited.restore();
  ::execve(what.program.c_str(), argv, envp);
  fail(report, false);
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& more,
                                          const std::vector<std::string>& names) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> result;
  const auto put = [&](std::string_view entry) {
    std::erase_if(result, [&](const std::string& old) { return name_of(old) == name_of(entry); });
    result.emplace_back(entry);
  };
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    if (std::find(names.begin(), names.end(), name) == names.end()) result.emplace_back(*entry);
  }
  for (const std::string& entry : more) put(entry);
  return result;
}

namespace {

// The parent of a process, 0 when it is gone: the second number after the name's last bracket.
pid_t parent_of(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos || text.size() < name_end + 4) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), &::closedir);
  if (processes == nullptr) return result;
  while (const dirent* entry = ::readdir(processes.get())) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (parent_of(name) == parent) result.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return result;
}

node_end to_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {true, WTERMSIG(wait_status)};
  return {false, WEXITSTATUS(wait_status)};
}

}  // namespace

children::children(const inherited_state& inherited) : inherited_(inherited) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

children::~children() {
  on_end_.clear();
  kill_orphans();
}

pid_t children::start(const child_request& what, end_callback on_end) {
  const std::vector<char*> argv = pointers(what.arguments);
  const std::vector<char*> envp = pointers(what.environment);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw errno_error("cannot start a process", errno);
  const os::descriptor reading(ends[0]);
  os::descriptor writing(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw errno_error("cannot start a process", errno);
  if (pid == 0) become(what, inherited_, parent, writing.get(), argv.data(), envp.data());
  writing.reset();
  // The pipe closes when the program has taken over.
  child_failure failure{};
  ssize_t bytes = 0;
  do {
    bytes = ::read(reading.get(), &failure, sizeof failure);
  } while (bytes < 0 && errno == EINTR);
  if (bytes != sizeof failure) {
    on_end_.emplace(pid, std::move(on_end));
    return pid;
  }
  ::waitpid(pid, nullptr, 0);
  throw errno_error(failure.in_directory ? "cannot go to the folder " + what.directory
                                         : "cannot run " + what.program,
                    failure.code);
}

void children::signal(pid_t child, int number) {
  // Not one that has been reaped: its number may be somebody else's.
  if (on_end_.contains(child)) ::kill(child, number);
}

void children::reap() {
  struct ended {
    end_callback tell;
    node_end how;
  };
  std::vector<ended> all;
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (auto known = on_end_.extract(pid)) {
      all.push_back({std::move(known.mapped()), to_end(wait_status)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ended& a, const ended& b) {
    return a.how.signalled && !b.how.signalled;
  });
  for (const ended& one : all) one.tell(one.how);
}

void children::kill_orphans() {
  const std::int64_t limit_ns = os::now_ns() + 5'000'000'000;
  while (os::now_ns() < limit_ns) {
    // Without any child, which is the rule, there is nothing to look for.
    siginfo_t none;
    if (::waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    bool any = false;
    for (const pid_t pid : children_of(::getpid())) {
      if (on_end_.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      // Its own children are ours as soon as it has ended: look again.
      ::waitpid(pid, nullptr, 0);
    }
    if (!any) return;
  }
}

}  // namespace strata::launch

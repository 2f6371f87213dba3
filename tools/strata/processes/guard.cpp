// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/guard.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/errno_error.hpp"
#include "os/clock.hpp"
#include "os/no_signals.hpp"
#include "tools/strata/events/frame_channel.hpp"
#include "tools/strata/processes/guard_messages.hpp"
#include "tools/strata/processes/process_tree.hpp"
#include "tools/strata/processes/start_process.hpp"

namespace strata::launcher {

namespace {

constexpr std::int64_t orphans_limit_ns = 5'000'000'000;
constexpr int look_at_overseers_ms = 1000;

// What is not for programs that we start is not for us either: but for our two ends it is the other
// process's, whose end is to be seen by all.
void close_what_is_not_ours(int requests, int reports) {
  const std::unique_ptr<DIR, int (*)(DIR*)> numbers(::opendir("/proc/self/fd"), &::closedir);
  if (numbers == nullptr) return;
  std::vector<int> close_these;
  while (const dirent* entry = ::readdir(numbers.get())) {
    const int fd = std::atoi(entry->d_name);
    if (fd <= 2 || fd == requests || fd == reports || fd == ::dirfd(numbers.get())) continue;
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) close_these.push_back(fd);
  }
  for (const int fd : close_these) ::close(fd);
}

// Who ends processes by name or command line ends the job so, and not what tidies up after it.
void call_ourselves(const std::string& name) {
  ::prctl(PR_SET_NAME, name.c_str());
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string line{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // The words of a command line lie one after the other, from here on.
  char* const words = program_invocation_name;
  if (line.empty() || std::strcmp(line.c_str(), words) != 0) return;
  std::memset(words, 0, line.size());
  std::memcpy(words, name.data(), std::min(name.size(), line.size() - 1));
}

// Until we had a group of our own, the launcher was sent it as well.
void drop_signals_of_the_launchers_group() {
  sigset_t all;
  sigfillset(&all);
  const timespec at_once{};
  while (::sigtimedwait(&all, nullptr, &at_once) > 0) {
  }
}

// All signals are blocked, from its birth on.
class guard {
 public:
  guard(const inherited_state& inherited, pid_t ward, pid_t group, int requests, int reports)
      : inherited_(inherited), ward_(ward), group_(group), requests_(requests), reports_(reports) {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int number :
         {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2})
      sigaddset(&ours, number);
    signals_ = os::descriptor(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
    set_nonblocking(reports_);
  }

  void run() {
    while (true) {
      std::array<pollfd, 3> events{pollfd{requests_, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{waiting_.empty() ? -1 : reports_, POLLOUT, 0}};
      const int count =
          ::poll(events.data(), events.size(), is_to_look() ? look_at_overseers_ms : -1);
      if (count == 0) continue_if_left_alone();
      if (count <= 0) continue;
      if (events[1].revents != 0) read_signals();
      if (events[2].revents != 0) write_reports();
      if (events[0].revents != 0 && !serve()) return;
    }
  }

 private:
  // False: we are alone.
  bool serve() {
    std::vector<os::descriptor> descriptors;
    const auto request = receive_request(requests_, descriptors);
    if (!request) return false;
    switch (request->word) {
      case guard_word::start:
        return send_answer(requests_, start(*request, descriptors));
      case guard_word::signal:
        note_pause(request->number);
        [[fallthrough]];
      case guard_word::signal_outside:
        signal(*request);
        return true;
      case guard_word::kill_orphans:
        kill_children([this](pid_t pid) { return running_.contains(pid); },
                      os::now_ns() + orphans_limit_ns);
        return send_answer(requests_, {});
    }
    return false;
  }

  guard_answer start(const guard_request& request, const std::vector<os::descriptor>& descriptors) {
    if (descriptors.size() != 3 + request.what.keep.size()) return {EMFILE, 0};
    std::vector<handed_over> handed;
    for (int i = 0; i < 3; ++i)
      handed.push_back({descriptors[static_cast<std::size_t>(i)].get(), i});
    for (std::size_t i = 0; i < request.what.keep.size(); ++i)
      handed.push_back({descriptors[3 + i].get(), request.what.keep[i]});
    const started_process begun = start_process(request.what, inherited_, handed, group_);
    if (begun.pid == 0) return {begun.code, begun.in_directory ? 1 : 0};
    running_.emplace(begun.pid, request.id);
    pid_of_.emplace(request.id, begun.pid);
    return {};
  }

  void signal(const guard_request& request) const {
    // Not one that has been reaped: its number may be somebody else's.
    const auto found = pid_of_.find(request.id);
    if (found == pid_of_.end()) return;
    const pid_t pid = found->second;
    const bool spares_group = request.word == guard_word::signal_outside;
    if (!spares_group || ::getpgid(pid) != group_) ::kill(pid, request.number);
  }

  // The launcher stops itself after its nodes.
  void note_pause(int number) {
    if (number != SIGSTOP && number != SIGCONT) return;
    paused_ = number == SIGSTOP;
    paused_ ? look_for_overseers() : overseen_.clear();
  }

  void look_for_overseers() {
    if (overseen_.empty() && group_ != 0) overseen_ = overseen_in(group_, ::getpid());
  }

  // The kernel stops the whole group where one of it uses the terminal in the background, and the
  // launcher cannot tell us. Where no shell is left by then it would not, but for us.
  void note_stop_by_others(pid_t pid, int wait_status) {
    if (!WIFSTOPPED(wait_status)) {
      if (stopped_.erase(pid) == 0 || !stopped_.empty()) return;
      for_us_alone_ = false;
      if (!paused_) overseen_.clear();
    } else if (::getpgid(pid) == group_ && group_ != 0) {
      stopped_.insert(pid);
      look_for_overseers();
      const int by = WSTOPSIG(wait_status);
      if (overseen_.empty() && (by == SIGTTIN || by == SIGTTOU)) for_us_alone_ = true;
    }
  }

  [[nodiscard]] bool is_to_look() const { return for_us_alone_ || !overseen_.empty(); }

  // As the kernel does with a stopped group when the last shell that could continue it has ended.
  // It never sees that of the launcher's: we are in its session, and the parent of nodes.
  void continue_if_left_alone() {
    const std::vector<overseen_process> now = overseen_in(group_, ::getpid());
    if (std::find_first_of(now.begin(), now.end(), overseen_.begin(), overseen_.end()) != now.end())
      return;
    overseen_.clear();
    for_us_alone_ = false;
    ::kill(-group_, SIGHUP);
    ::kill(-group_, SIGCONT);
  }

  void read_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const auto number = static_cast<int>(info.ssi_signo);
      // Whoever signals the parent of a node means the launcher. In one group with us it may have
      // the same signal already, and a second one would end the job at once.
      if (number != SIGCHLD && group_ != 0 && ::getppid() == ward_) ::kill(ward_, number);
    }
    int wait_status = 0;
    for (pid_t pid = 0;
         (pid = ::waitpid(-1, &wait_status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      note_stop_by_others(pid, wait_status);
      if (WIFSTOPPED(wait_status) || WIFCONTINUED(wait_status)) continue;
      const auto known = running_.extract(pid);
      if (!known) continue;
      pid_of_.erase(known.mapped());
      const guard_report report{known.mapped(), wait_status};
      waiting_.append(reinterpret_cast<const char*>(&report), sizeof report);
    }
    write_reports();
  }

  void write_reports() {
    while (!waiting_.empty()) {
      const ssize_t written = ::write(reports_, waiting_.data(), waiting_.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno != EAGAIN) waiting_.clear();  // nobody is there
      if (written <= 0) return;
      waiting_.erase(0, static_cast<std::size_t>(written));
    }
  }

  const inherited_state& inherited_;
  const pid_t ward_, group_;
  const int requests_, reports_;
  os::descriptor signals_;
  std::map<pid_t, child_id> running_;
  std::map<child_id, pid_t> pid_of_;        // the same
  std::string waiting_;                     // reports
  bool paused_ = false;                     // by the launcher
  std::set<pid_t> stopped_;                 // of our children in our ward's group
  bool for_us_alone_ = false;               // it is stopped since the kernel takes us for a shell
  std::vector<overseen_process> overseen_;  // while the job is stopped: of our ward's group, then
};

[[noreturn]] void guard_until_alone(const inherited_state& inherited, pid_t ward, int requests,
                                    int reports) {
  try {
    // 0: that of a process outside our PID namespace, which we could not put nodes into.
    const pid_t group = ::getpgrp();
    // Out of reach of who kills the group of the launcher, and of the terminal.
    if (group != 0) {
      ::setpgid(0, 0);
      drop_signals_of_the_launchers_group();
    }
    adopt_orphans();
    close_what_is_not_ours(requests, reports);
    // Any number that the other process may have.
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {0, 1, 2}) ::dup2(null, stream);
    call_ourselves("job-guard " + std::to_string(ward));
    guard(inherited, ward, group, requests, reports).run();
  } catch (const std::exception&) {
    // Out of memory: there is nothing left to do but the last thing.
  }
  kill_children([](pid_t) { return false; }, std::numeric_limits<std::int64_t>::max());
  ::_exit(0);
}

}  // namespace

guard_ends start_guard(const inherited_state& inherited) {
  std::array<int, 2> sockets;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw errno_error("cannot create a line to a process", errno);
  os::descriptor ours(sockets[0]);
  os::descriptor theirs(sockets[1]);
  auto [reading, writing] = make_pipe();
  const pid_t ward = ::getpid();
  // A Ctrl-Z must not stop the guard: what continues the launcher's group might not reach it.
  const os::no_signals from_birth;
  const pid_t pid = ::fork();
  if (pid < 0) throw errno_error("cannot start a process", errno, how_to_get_processes);
  if (pid == 0) {
    ours.reset();
    reading.reset();
    guard_until_alone(inherited, ward, theirs.get(), writing.get());
  }
  set_nonblocking(reading.get());
  return {std::move(ours), std::move(reading), pid};
}

}  // namespace strata::launcher

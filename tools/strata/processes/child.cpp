// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/errno_error.hpp"
#include "base/standard_streams.hpp"
#include "os/clock.hpp"
#include "tools/strata/processes/guard.hpp"
#include "tools/strata/processes/guard_messages.hpp"
#include "tools/strata/processes/process_tree.hpp"

extern char** environ;

namespace strata::launcher {

inherited_state::inherited_state() {
  keep_numbers_of_standard_streams();
  sigprocmask(SIG_SETMASK, nullptr, &mask_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_action_);
  // Ignored, it would make the ends of our children unknowable.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &child_action_);
  getrlimit(RLIMIT_NOFILE, &files_);
}

bool inherited_state::ignored(int signal) const {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void inherited_state::restore() const noexcept {
  sigaction(SIGPIPE, &pipe_action_, nullptr);
  sigaction(SIGCHLD, &child_action_, nullptr);
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

// For the guard to end all that is below it.
constexpr std::int64_t end_limit_ns = 5'000'000'000;

node_end to_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {true, WTERMSIG(wait_status)};
  return {false, WEXITSTATUS(wait_status)};
}

// Whether the guard has ended in time: nothing else closes its pipe.
bool has_ended(int reports) {
  const std::int64_t limit_ns = os::now_ns() + end_limit_ns;
  std::array<char, 512> block;
  while (true) {
    const ssize_t bytes = ::read(reports, block.data(), block.size());
    if (bytes > 0 || (bytes < 0 && errno == EINTR)) continue;
    const std::int64_t left_ms = (limit_ns - os::now_ns()) / 1'000'000;
    if (bytes == 0 || left_ms <= 0) return bytes == 0;
    pollfd more{reports, POLLIN, 0};
    ::poll(&more, 1, static_cast<int>(left_ms));
  }
}

error without_guard() {
  return error(
      "the process job-guard, which keeps watch over the nodes, has ended; start the job "
      "again");
}

// Where the user can put it right, it is the user's error.
[[noreturn]] void throw_cannot_run(const std::string& program, int code) {
  const std::string what = "cannot run " + program;
  if (code == EAGAIN || code == ENOMEM) throw errno_error(what, code, how_to_get_processes);
  std::string remedy;
  if (code == ENOEXEC)
    remedy = "it is no program of this system; a script begins with #! and what interprets it";
  if (code == ENOENT && ::access(program.c_str(), F_OK) == 0)
    remedy = "what it names as its loader or interpreter is not there";
  throw user_error(errno_error(what, code, remedy).what());
}

// Nobody asks how they ended: of the nodes the guard tells, and of the guard its pipe.
void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

children::children(event_loop& loop, const inherited_state& inherited) : loop_(loop) {
  guard_ends guard = start_guard(inherited);
  requests_ = std::move(guard.requests);
  reports_ = std::move(guard.reports);
  guard_ = guard.pid;
  // What is below the guard is ours if that is killed.
  adopt_orphans();
  loop_.watch_reads(reports_.get(), [this] { on_reports(); });
  ends_ = std::make_unique<signal_events>(loop_, std::initializer_list<int>{SIGCHLD},
                                          [](const signalfd_siginfo&) { reap_all(); });
  reap_all();  // what has ended before the signal was looked for
}

children::~children() {
  on_end_.clear();
  if (!reports_) return;
  loop_.forget(reports_.get());
  requests_.reset();
  if (has_ended(reports_.get())) ::waitpid(guard_, nullptr, 0);
}

child_id children::start(const child_request& what, end_callback on_end) {
  const guard_request request{.word = guard_word::start, .id = ++last_, .what = what};
  std::optional<guard_answer> answer;
  if (send_request(requests_.get(), request)) answer = receive_answer(requests_.get());
  if (!answer) throw without_guard();
  if (answer->in_directory != 0)
    throw user_error(errno_error("cannot go to the folder " + what.directory, answer->code).what());
  if (answer->code != 0) throw_cannot_run(what.program, answer->code);
  on_end_.emplace(request.id, std::move(on_end));
  return request.id;
}

void children::signal(child_id child, int number) {
  ask_to_signal(guard_word::signal, child, number);
}

void children::signal_outside(child_id child, int number) {
  ask_to_signal(guard_word::signal_outside, child, number);
}

void children::ask_to_signal(guard_word word, child_id child, int number) {
  if (!on_end_.contains(child)) return;
  // Without a guard they have ended, or will in a moment: on_reports() will tell.
  (void)send_request(requests_.get(), {.word = word, .id = child, .number = number});
}

bool children::overseen() const {
  const pid_t group = ::getpgrp();
  // 0: that of a process outside our PID namespace, which a shell there may oversee.
  return group == 0 || !overseen_in(group, guard_).empty();
}

void children::kill_orphans() {
  if (send_request(requests_.get(), {.word = guard_word::kill_orphans}))
    (void)receive_answer(requests_.get());
}

void children::on_reports() {
  struct ended {
    end_callback tell;
    node_end how;
  };
  std::vector<ended> all;
  std::array<char, 4096> block;
  ssize_t bytes = 0;
  while ((bytes = ::read(reports_.get(), block.data(), block.size())) > 0 ||
         (bytes < 0 && errno == EINTR)) {
    if (bytes > 0) unread_.append(block.data(), static_cast<std::size_t>(bytes));
  }
  const bool guarded = bytes != 0;
  std::size_t at = 0;
  for (guard_report report; unread_.size() - at >= sizeof report; at += sizeof report) {
    std::memcpy(&report, unread_.data() + at, sizeof report);
    if (auto known = on_end_.extract(report.id))
      all.push_back({std::move(known.mapped()), to_end(report.wait_status)});
  }
  unread_.erase(0, at);
  if (!guarded) {
    lose_guard();
    for (auto& [id, tell] : std::exchange(on_end_, {}))
      all.push_back({std::move(tell), {true, SIGKILL}});
  }
  std::stable_sort(all.begin(), all.end(), [](const ended& a, const ended& b) {
    return a.how.signalled && !b.how.signalled;
  });
  for (const ended& one : all) one.tell(one.how);
}

// The kernel kills the guard's own children with it, and all others are ours now.
void children::lose_guard() {
  loop_.forget(reports_.get());
  reports_.reset();
  requests_.reset();
  kill_children([](pid_t) { return false; }, os::now_ns() + end_limit_ns);
}

}  // namespace strata::launcher

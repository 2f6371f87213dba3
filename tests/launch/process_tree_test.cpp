// SPDX-License-Identifier: Apache-2.0
// Ending what is below a process.
#include "tools/strata/processes/process_tree.hpp"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <limits>

#include "os/clock.hpp"
#include "tools/strata/events/frame_channel.hpp"

namespace {

// A process that does `first`, says how that went, and then nothing.
template <class First>
pid_t start_idle(int report, First&& first) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char said = first() ? 'y' : 'n';
  (void)!::write(report, &said, 1);
  for (;;) ::pause();
}

// That has been killed and that nobody may reap but the one who traces it, who does not.
TEST(kill_children, waits_for_one_that_does_not_end_no_longer_than_told) {
  const strata::launcher::pipe_ends report = strata::launcher::make_pipe();
  char said = 0;
  const pid_t traced = start_idle(report.writing.get(), [] {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    return true;
  });
  ASSERT_EQ(::read(report.reading.get(), &said, 1), 1);
  const pid_t tracer = start_idle(report.writing.get(), [traced] {
    return ::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0;
  });
  ASSERT_EQ(::read(report.reading.get(), &said, 1), 1);
  const bool may_trace = said == 'y';
  const auto is_other = [traced](pid_t pid) { return pid != traced; };
  if (may_trace) {
    strata::launcher::kill_children(is_other, strata::os::now_ns());
    EXPECT_EQ(::waitpid(traced, nullptr, WNOHANG), 0) << "it ends when its tracer does";
  }
  ::kill(tracer, SIGKILL);
  EXPECT_EQ(::waitpid(tracer, nullptr, 0), tracer);
  strata::launcher::kill_children(is_other, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(::waitpid(traced, nullptr, WNOHANG), -1) << "it has been reaped";
  if (!may_trace) GTEST_SKIP() << "needs the right to trace a process";
}

TEST(kill_children, ends_those_whose_names_hold_anything) {
  for (const char* const name : {"a\nb", "a) \n(b", ") S 1 1 1 (", "\n"}) {
    const strata::launcher::pipe_ends report = strata::launcher::make_pipe();
    char said = 0;
    const pid_t child =
        start_idle(report.writing.get(), [name] { return ::prctl(PR_SET_NAME, name) == 0; });
    ASSERT_EQ(::read(report.reading.get(), &said, 1), 1);
    ASSERT_EQ(said, 'y');
    strata::launcher::kill_children([](pid_t) { return false; },
                                    std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), -1) << name;
  }
}

enum outcome : int { ended, left, without_rights };

// Of a child whose parent is a process that `hide` has kept /proc from telling of.
template <class Hide>
int end_child_where(Hide&& hide, pid_t (*begin)() = &::fork) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    if (!hide()) ::_exit(without_rights);
    // The first process of a PID namespace is a child of who has made that.
    const pid_t parent = ::fork();
    if (parent == 0) {
      const pid_t child = begin();
      if (child < 0) ::_exit(without_rights);
      while (child == 0) ::pause();
      const std::int64_t limit_ns = strata::os::now_ns() + 20'000'000'000;
      strata::launcher::kill_children([](pid_t) { return false; }, limit_ns);
      const bool is_left = ::waitpid(child, nullptr, WNOHANG) == 0;
      if (is_left) ::kill(child, SIGKILL);
      ::_exit(is_left ? left : ended);
    }
    int status = 0;
    ::waitpid(parent, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(outside, &status, 0), outside);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(kill_children, ends_those_whose_numbers_in_proc_are_others) {
  const int how = end_child_where([] { return ::unshare(CLONE_NEWPID) == 0; });
  if (how == without_rights) GTEST_SKIP() << "needs the right to make namespaces";
  EXPECT_EQ(how, ended);
}

// A child with a number that the latest ones have not come to again.
pid_t fork_before_numbers_go_round() {
  const pid_t high = 30'000;
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<std::uintptr_t>(&high);
  how.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
}

TEST(kill_children, ends_those_that_are_there_since_numbers_went_round) {
  const int how =
      end_child_where([] { return ::unshare(CLONE_NEWPID) == 0; }, &fork_before_numbers_go_round);
  if (how == without_rights) GTEST_SKIP() << "needs the right to choose a process's number";
  EXPECT_EQ(how, ended);
}

TEST(kill_children, ends_those_of_whom_proc_does_not_tell) {
  const int how = end_child_where([] {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
  });
  if (how == without_rights) GTEST_SKIP() << "needs the right to make namespaces";
  EXPECT_EQ(how, ended);
}

}  // namespace

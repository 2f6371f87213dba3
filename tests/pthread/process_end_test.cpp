// SPDX-License-Identifier: Apache-2.0
// Whether another process has ended, where /proc has other numbers for all of them.
#include "pthread/process_end.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace {

using strata::detail::posix::has_process_ended;
using strata::detail::posix::name_among_processes;

enum outcome : int { right, taken_for_living, taken_for_dead, without_rights };

// A child whose name we learn while it lives, and which nobody reaps before we have asked.
outcome look_at_child() {
  int ends[2];
  if (::pipe(ends) != 0) return without_rights;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uintptr_t name = name_among_processes(1);
    (void)!::write(ends[1], &name, sizeof name);
    for (;;) ::pause();
  }
  std::uintptr_t name = 0;
  (void)!::read(ends[0], &name, sizeof name);
  const bool lives = !has_process_ended(name);
  ::kill(child, SIGKILL);
  siginfo_t how;
  ::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT);
  const bool has_ended = has_process_ended(name);
  ::waitpid(child, nullptr, 0);
  if (!lives) return taken_for_dead;
  return has_ended ? right : taken_for_living;
}

TEST(process_end, is_seen_in_a_namespace_whose_proc_is_that_of_outside) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(without_rights);
    const pid_t first = ::fork();
    if (first == 0) ::_exit(look_at_child());
    int status = 0;
    ::waitpid(first, &status, 0);
    ::_exit(WEXITSTATUS(status));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(outside, &status, 0), outside);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == without_rights) GTEST_SKIP() << "needs the right to make namespaces";
  EXPECT_EQ(WEXITSTATUS(status), right);
}

TEST(process_end, is_seen_before_the_parent_has_asked) { EXPECT_EQ(look_at_child(), right); }

}  // namespace

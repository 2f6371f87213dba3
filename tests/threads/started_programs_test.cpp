// SPDX-License-Identifier: Apache-2.0
// What threads have blocked of signals, and so what programs have that they start: what the process
// had when the first thread was made. In a program of its own: its process has SIGUSR2 blocked, and
// one worker, before there is any thread.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sched/ticker.hpp"
#include "strata/blocking.hpp"
#include "strata/future.hpp"
#include "strata/pthread.h"
#include "strata/runtime.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

sigset_t only(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  return one;
}

const bool is_prepared = [] {
  const sigset_t usr2 = only(SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  setenv("STRATA_WORKERS", "1", 1);
  return true;
}();

class blocked_here {
 public:
  explicit blocked_here(int number) {
    const sigset_t one = only(number);
    pthread_sigmask(SIG_BLOCK, &one, &before_);
  }
  ~blocked_here() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_here(const blocked_here&) = delete;
  blocked_here& operator=(const blocked_here&) = delete;

 private:
  sigset_t before_{};
};

// As the kernel spells it, without the signals that the C library keeps for itself.
std::string mask_now() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  unsigned long long bits = 0;
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&mask, number) == 1) bits |= 1ULL << (number - 1);
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", bits);
  return text.data();
}

options with_workers(unsigned count) {
  options o;
  o.workers = count;
  return o;
}

struct output_file {
  std::string path = testing::TempDir() + "strata_started_XXXXXX";
  int fd = mkstemp(path.data());
  ~output_file() {
    close(fd);
    unlink(path.c_str());
  }
  output_file() = default;
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  [[nodiscard]] std::string blocked() const {
    std::ifstream in(path);
    std::string word;
    in >> word;
    EXPECT_EQ(word, "SigBlk:");
    in >> word;
    return word;
  }
};

using spawn_function = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                               const posix_spawnattr_t*, char* const[], char* const[]);

void wait_for(pid_t process) {
  int status = -1;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

struct grep_command {
  std::string words[3] = {"grep", "SigBlk", "/proc/self/status"};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
};

std::string by_spawn(spawn_function spawn = &posix_spawnp) {
  const output_file out;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.fd, STDOUT_FILENO);
  grep_command grep;
  pid_t process = 0;
  EXPECT_EQ(spawn(&process, "grep", &actions, nullptr, grep.arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  wait_for(process);
  return out.blocked();
}

std::string by_system() {
  const output_file out;
  const std::string command = "grep SigBlk /proc/self/status >'" + out.path + "'";
  EXPECT_EQ(system(command.c_str()), 0);
  return out.blocked();
}

// Of main(), before it has made threads: each test begins with these.
const std::string& mask_of_process() {
  static const std::string mask = mask_now();
  return mask;
}
// Some shells unblock everything first.
const std::string& mask_by_system() {
  static const std::string mask = by_system();
  return mask;
}

std::string by_fork() {
  const output_file out;
  grep_command grep;
  const pid_t process = fork();
  if (process == 0) {
    dup2(out.fd, STDOUT_FILENO);
    execvp("grep", grep.arguments.data());
    _exit(1);
  }
  wait_for(process);
  return out.blocked();
}

// Where the shell would find it.
std::string path_of(const std::string& program) {
  std::istringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = folder + "/" + program;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  throw std::runtime_error("no program " + program);
}

// The child has what its thread's OS thread has blocked, until it becomes another program.
template <class Become>
std::string by_vfork(Become become) {
  const output_file out;
  grep_command grep;
  const pid_t process = vfork();
  if (process == 0) {
    dup2(out.fd, STDOUT_FILENO);
    become(grep.arguments.data());
    _exit(1);
  }
  wait_for(process);
  return out.blocked();
}

void keep_masks_of_process() {
  (void)mask_of_process();
  (void)mask_by_system();
}

void expect_mask_of_process() {
  EXPECT_EQ(mask_now(), mask_of_process());
  EXPECT_EQ(by_spawn(), mask_of_process());
  EXPECT_EQ(by_system(), mask_by_system());
  EXPECT_EQ(by_fork(), mask_of_process());
}

TEST(started_programs, by_the_process_itself) {
  ASSERT_TRUE(is_prepared);
  EXPECT_NE(std::stoull(mask_of_process(), nullptr, 16) & (1ULL << (SIGUSR2 - 1)), 0U);
  EXPECT_EQ(std::stoull(mask_of_process(), nullptr, 16) & (1ULL << (SIGTERM - 1)), 0U);
  expect_mask_of_process();
}

TEST(started_programs, by_threads_of_a_plain_main) {
  keep_masks_of_process();
  thread([] { expect_mask_of_process(); }).join();
  jthread([] { expect_mask_of_process(); }).join();
  async([] { expect_mask_of_process(); }).get();
}

TEST(started_programs, within_run) {
  keep_masks_of_process();
  runtime rt(with_workers(2));
  rt.run([] {
    expect_mask_of_process();
    thread([] { expect_mask_of_process(); }).join();
  });
}

TEST(started_programs, within_blocking) {
  keep_masks_of_process();
  thread([] { blocking([] { expect_mask_of_process(); }); }).join();
  runtime rt(with_workers(2));
  rt.run([] { blocking([] { expect_mask_of_process(); }); });
}

// The OS threads of blocking() are anybody's: each call has what its own caller has blocked.
TEST(started_programs, within_blocking_after_others) {
  keep_masks_of_process();
  {
    const blocked_here more(SIGUSR1);
    const std::string with_more = mask_now();
    ASSERT_NE(with_more, mask_of_process());
    runtime rt(with_workers(1));
    rt.run([&] {
      blocking([&] {
        EXPECT_EQ(mask_now(), with_more);
        EXPECT_EQ(by_spawn(), with_more);
      });
    });
  }
  thread([] { blocking([] { expect_mask_of_process(); }); }).join();
}

// Handlers of pthreads' programs may post semaphores, so none may interrupt their workers.
TEST(started_programs, by_pthreads_of_a_plain_main) {
  keep_masks_of_process();
  const auto look = [](void*) -> void* {
    EXPECT_NE(mask_now(), mask_of_process());
    EXPECT_EQ(by_spawn(&strata_posix_spawnp), mask_of_process());
    EXPECT_EQ(by_fork(), mask_of_process());
    EXPECT_EQ(by_vfork([](char* const words[]) { strata_execvp("grep", words); }),
              mask_of_process());
    EXPECT_EQ(by_vfork([](char* const words[]) { strata_execvpe("grep", words, environ); }),
              mask_of_process());
    static const std::string grep = path_of("grep");
    EXPECT_EQ(by_vfork([](char* const words[]) { strata_execv(grep.c_str(), words); }),
              mask_of_process());
    EXPECT_EQ(by_vfork([](char* const words[]) { strata_execve(grep.c_str(), words, environ); }),
              mask_of_process());
    const int file = open(grep.c_str(), O_RDONLY);
    EXPECT_EQ(by_vfork([&](char* const words[]) { strata_fexecve(file, words, environ); }),
              mask_of_process());
    close(file);
    EXPECT_EQ(by_vfork([](char* const words[]) {
                strata_execl(grep.c_str(), words[0], words[1], words[2], nullptr);
              }),
              mask_of_process());
    EXPECT_EQ(by_vfork([](char* const words[]) {
                strata_execlp("grep", words[0], words[1], words[2], nullptr);
              }),
              mask_of_process());
    EXPECT_EQ(by_vfork([](char* const words[]) {
                strata_execle(grep.c_str(), words[0], words[1], words[2], nullptr, environ);
              }),
              mask_of_process());
    return nullptr;
  };
  detail::scheduler* home = nullptr;
  thread([&] { home = detail::this_worker().owner; }).join();
  pthread_t made{};
  ASSERT_EQ(strata_pthread_create(&made, nullptr, look, nullptr), 0);
  EXPECT_EQ(strata_pthread_join(made, nullptr), 0);
  // And those of the others go on as before.
  thread([&] {
    EXPECT_EQ(detail::this_worker().owner, home);
    expect_mask_of_process();
  }).join();
}

// And not that of the process.
TEST(started_programs, by_pthreads_have_the_environment_that_they_are_given) {
  const auto look = [](void*) -> void* {
    static const std::string shell = path_of("sh");
    static char name[] = "sh", flag[] = "-c", script[] = "test \"$GIVEN $STRATA_WORKERS\" = '7 '",
                given[] = "GIVEN=7";
    static char* const words[] = {name, flag, script, nullptr};
    static char* const environment[] = {given, nullptr};
    for (const int way : {0, 1, 2}) {
      const pid_t child = fork();
      if (child == 0) {
        if (way == 0) strata_execve(shell.c_str(), words, environment);
        if (way == 1) strata_execvpe(name, words, environment);
        strata_execle(shell.c_str(), name, flag, script, nullptr, environment);
        _exit(1);
      }
      wait_for(child);
    }
    return nullptr;
  };
  pthread_t made{};
  ASSERT_EQ(strata_pthread_create(&made, nullptr, look, nullptr), 0);
  EXPECT_EQ(strata_pthread_join(made, nullptr), 0);
}

// A tick is a signal, too.
TEST(started_programs, threads_of_a_plain_main_can_be_preempted) {
  if (!detail::ticker::is_safe()) GTEST_SKIP() << "no preemption in this build";
  std::atomic<bool> stop{false};
  thread computes({.preemptible = true}, [&] {
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  thread other([&] { stop.store(true, std::memory_order_relaxed); });
  other.join();
  computes.join();
}

// Within run() the child of a fork keeps its worker, which the frames below need: it may exec or go
// on without waiting, also where the process has pthreads.
TEST(started_programs, child_of_a_fork_within_run) {
  keep_masks_of_process();
  (void)strata_pthread_self();
  const auto fork_there = [] {
    const detail::scheduler* const home = detail::this_worker().owner;
    const pid_t child = fork();
    if (child == 0) _exit(detail::this_worker().owner == home ? 0 : 1);
    wait_for(child);
    EXPECT_EQ(by_fork(), mask_of_process());
  };
  runtime rt(with_workers(2));
  rt.run([&] {
    fork_there();
    thread(fork_there).join();
    (void)strata_pthread_self();
    fork_there();
  });
}

}  // namespace
}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// A program whose threads wait in the kernel for what other threads of it do next: natively, and as
// it is under `strata pthread` with one worker. Status 0 if all is right.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "checks.hpp"

namespace {

constexpr int status_of_child = 7;

// A child that ends when it is told to.
class child {
 public:
  child() {
    int ends[2] = {-1, -1};
    SAME(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char told = 0;
      close(ends[1]);
      _exit(read(ends[0], &told, 1) == 1 ? status_of_child : 1);
    }
    close(ends[0]);
    tell_ = ends[1];
  }
  ~child() { close(tell_); }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  void end() const { SAME(write(tell_, "x", 1), 1); }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int tell_ = -1;
};

void check_status(int status) {
  SAME(WIFEXITED(status), true);
  SAME(WEXITSTATUS(status), status_of_child);
}

// `waits` in a thread, and once that is about to, `ends` what it waits for.
template <class Waits, class Ends>
void beside(Waits waits, Ends ends) {
  std::atomic<bool> asks{false};
  std::thread other([&] {
    asks = true;
    waits();
  });
  while (!asks) sched_yield();
  ends();
  other.join();
}

// ---- without threads ----

void nothing(int) {}

// A handler ends a wait.
void interrupted() {
  struct sigaction action {};
  action.sa_handler = &nothing;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 1000}, {0, 1000}};
  const itimerval never{};
  const child c;
  setitimer(ITIMER_REAL, &often, nullptr);
  int status = 0;
  SAME(waitpid(c.pid(), &status, 0), -1);
  SAME(errno, EINTR);
  setitimer(ITIMER_REAL, &never, nullptr);
  c.end();
  SAME(waitpid(c.pid(), &status, 0), c.pid());
  check_status(status);
}

// ---- children ----

template <class F>
void await(F f) {
  const child c;
  beside([&] { f(c.pid()); }, [&] { c.end(); });
}

void children() {
  await([](pid_t pid) {
    int status = 0;
    SAME(wait(&status), pid);
    check_status(status);
  });
  await([](pid_t pid) {
    int status = 0;
    SAME(waitpid(pid, &status, 0), pid);
    check_status(status);
  });
  await([](pid_t pid) {
    int status = 0;
    rusage usage{};
    usage.ru_maxrss = -1;
    SAME(wait3(&status, 0, &usage), pid);
    check_status(status);
    SAME(usage.ru_maxrss >= 0, true);
  });
  await([](pid_t pid) {
    int status = 0;
    rusage usage{};
    usage.ru_maxrss = -1;
    SAME(wait4(pid, &status, 0, &usage), pid);
    check_status(status);
    SAME(usage.ru_maxrss >= 0, true);
  });
  await([](pid_t pid) {
    siginfo_t found{};
    SAME(waitid(P_PID, static_cast<id_t>(pid), &found, WEXITED | WNOWAIT), 0);
    SAME(found.si_pid, pid);
    SAME(found.si_status, status_of_child);
    SAME(waitid(P_ALL, 0, &found, WEXITED), 0);  // there already
    SAME(found.si_pid, pid);
  });
  // And what needs no wait.
  std::thread([] {
    int status = 0;
    siginfo_t found{};
    {
      const child c;
      SAME(waitpid(c.pid(), &status, WNOHANG), 0);
      SAME(waitid(P_PID, static_cast<id_t>(c.pid()), &found, WEXITED | WNOHANG), 0);
      SAME(found.si_pid, 0);
      c.end();
      SAME(waitpid(-1, &status, 0), c.pid());
    }
    errno = 0;
    SAME(wait(nullptr), -1);
    SAME(errno, ECHILD);
    SAME(waitid(P_ALL, 0, &found, WEXITED), -1);
    SAME(errno, ECHILD);
    SAME(waitpid(-1, nullptr, 0x40000000 - 1), -1);
    SAME(errno, EINVAL);
  }).join();
}

// More than there are workers, and all end together.
void many() {
  constexpr int count = 20;
  std::atomic<int> asked{0};
  const std::vector<child> all(count);
  std::vector<std::thread> waiters;
  for (const child& c : all)
    waiters.emplace_back([&] {
      ++asked;
      int status = 0;
      SAME(waitpid(c.pid(), &status, 0), c.pid());
      check_status(status);
    });
  while (asked != count) sched_yield();
  for (const child& c : all) c.end();
  for (std::thread& t : waiters) t.join();
}

// ---- files ----

void files() {
  const int one = memfd_create("strata-test", 0);
  const int other = open(("/proc/self/fd/" + std::to_string(one)).c_str(), O_RDWR);
  SAME(other >= 0, true);
  SAME(flock(one, LOCK_EX), 0);
  SAME(flock(other, LOCK_SH | LOCK_NB), -1);
  SAME(errno, EWOULDBLOCK);
  beside(
      [&] {
        SAME(flock(other, LOCK_EX), 0);
        SAME(flock(other, LOCK_SH), 0);  // nobody else has it
        SAME(flock(other, LOCK_UN), 0);
        SAME(flock(-1, LOCK_EX), -1);
        SAME(errno, EBADF);
      },
      [&] { SAME(flock(one, LOCK_UN), 0); });
  close(one);
  close(other);
}

// ---- commands ----

void commands() {
  int ends[2] = {-1, -1};
  SAME(pipe(ends), 0);
  const std::string command = "read line </proc/self/fd/" + std::to_string(ends[0]) + "; exit 5";
  beside(
      [&] {
        const int status = system(command.c_str());
        SAME(WIFEXITED(status), true);
        SAME(WEXITSTATUS(status), 5);
        SAME(system(nullptr) != 0, true);
      },
      [&] { SAME(write(ends[1], "x\n", 2), 2); });
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  interrupted();
  children();
  many();
  files();
  commands();
  return pthread_programs::status_of_all();
}

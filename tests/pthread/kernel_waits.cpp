// SPDX-License-Identifier: Apache-2.0
// A program whose threads wait in the kernel for what other threads of it do next: natively, and as
// it is under `strata pthread` with one worker. Status 0 if all is right.
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "checks.hpp"

namespace {

constexpr int status_of_child = 7;

// A child that ends when it is told to.
class child {
 public:
  child() : child([] {}) {}
  // Which begins with that.
  template <class Begin>
  explicit child(Begin begin) {
    int ends[2] = {-1, -1};
    SAME(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char told = 0;
      close(ends[1]);
      begin();
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
  SAME(flock(one, LOCK_UN), 0);
  // Of a part: another process has it.
  for (const bool by_fcntl : {false, true}) {
    SAME(ftruncate(one, 100), 0);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    int locked[2] = {-1, -1};
    SAME(pipe(locked), 0);
    const child holder([&] {
      SAME(fcntl(one, F_SETLK, &whole), 0);
      SAME(write(locked[1], "x", 1), 1);
    });
    char told = 0;
    SAME(read(locked[0], &told, 1), 1);
    beside(
        [&] {
          SAME(by_fcntl ? fcntl(one, F_SETLKW, &whole) : lockf(one, F_LOCK, 0), 0);
          SAME(lockf(one, F_LOCK, 0), 0);  // ours
          SAME(lockf(one, F_ULOCK, 0), 0);
          SAME(lockf(-1, F_LOCK, 0), -1);
          SAME(errno, EBADF);
        },
        [&] { holder.end(); });
    int status = 0;
    SAME(waitpid(holder.pid(), &status, 0), holder.pid());
    check_status(status);
    close(locked[0]);
    close(locked[1]);
  }
  // Those of an open file.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  SAME(fcntl(one, F_OFD_SETLK, &whole), 0);
  beside(
      [&] {
        struct flock part {};
        part.l_type = F_WRLCK;
        SAME(fcntl(other, F_OFD_SETLKW, &part), 0);
      },
      [&] {
        struct flock none {};
        none.l_type = F_UNLCK;
        SAME(fcntl(one, F_OFD_SETLK, &none), 0);
      });
  SAME(fcntl(one, F_GETFL) & O_ACCMODE, O_RDWR);
  close(one);
  close(other);
}

// ---- queues ----

void system_v() {
  const int semaphores = semget(IPC_PRIVATE, 2, 0600);
  SAME(semaphores >= 0, true);
  sembuf take_both[2] = {{0, -1, 0}, {1, -1, 0}};
  sembuf give_one{0, 1, 0};
  sembuf give_other{1, 1, 0};
  beside([&] { SAME(semop(semaphores, take_both, 2), 0); },
         [&] {
           SAME(semop(semaphores, &give_one, 1), 0);
           SAME(semop(semaphores, &give_other, 1), 0);
         });
  std::thread([&] {
    const timespec little{0, 1'000'000};
    SAME(semtimedop(semaphores, take_both, 2, &little), -1);
    SAME(errno, EAGAIN);
    take_both[0].sem_flg = IPC_NOWAIT;
    SAME(semop(semaphores, take_both, 1), -1);
    SAME(errno, EAGAIN);
  }).join();
  SAME(semctl(semaphores, 0, IPC_RMID), 0);

  struct message {
    long kind;
    char text[8000];
  };
  const int queue = msgget(IPC_PRIVATE, 0600);
  SAME(queue >= 0, true);
  beside(
      [&] {
        message got{};
        SAME(msgrcv(queue, &got, sizeof got.text, 7, 0), 1);
        SAME(got.text[0], 'b');
        got.kind = 9;
        // When there is room.
        for (int i = 0; i < 8; ++i) SAME(msgsnd(queue, &got, sizeof got.text, 0), 0);
      },
      [&] {
        const message other_kind{1, {'a'}};
        const message wanted{7, {'b'}};
        SAME(msgsnd(queue, &other_kind, 1, 0), 0);
        SAME(msgsnd(queue, &wanted, 1, 0), 0);
        message got{};
        for (int i = 0; i < 8; ++i) SAME(msgrcv(queue, &got, sizeof got.text, 9, 0), 8000);
      });
  SAME(msgctl(queue, IPC_RMID, nullptr), 0);
}

// Room for one message of one byte, and no name. -1: the kernel has no queues.
mqd_t new_queue() {
  const std::string name = "/strata-test-" + std::to_string(getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 1;
  const mqd_t queue = mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  if (queue == -1) SAME(errno, ENOSYS);
  mq_unlink(name.c_str());
  return queue;
}

void posix_queues() {
  const mqd_t there = new_queue();
  const mqd_t back = new_queue();
  if (there == -1) return;
  beside(
      [&] {
        char got = 0;
        unsigned priority = 0;
        SAME(mq_receive(there, &got, 1, &priority), 1);
        SAME(got, 'q');
        SAME(priority, 3);
        SAME(mq_send(back, "r", 1, 0), 0);
        SAME(mq_send(back, "s", 1, 0), 0);  // when there is room
      },
      [&] {
        char got = 0;
        SAME(mq_send(there, "q", 1, 3), 0);
        SAME(mq_receive(back, &got, 1, nullptr), 1);
        SAME(got, 'r');
        SAME(mq_receive(back, &got, 1, nullptr), 1);
        SAME(got, 's');
      });
  std::thread([&] {
    char got = 0;
    timespec soon{};
    clock_gettime(CLOCK_REALTIME, &soon);
    SAME(mq_timedreceive(there, &got, 1, nullptr, &soon), -1);
    SAME(errno, ETIMEDOUT);
    SAME(mq_send(there, "t", 1, 0), 0);
    SAME(mq_timedsend(there, "u", 1, 0, &soon), -1);
    SAME(errno, ETIMEDOUT);
  }).join();
  mq_close(there);
  mq_close(back);
}

// ---- what is meant for another call ----

// The kernel threads that wait for threads of `strata pthread` are told late to end a call that has
// ended by itself. Natively there are none of them.
void disturb_who_waits_for_others() {
  constexpr int own_signal = 32;
  DIR* const threads = opendir("/proc/self/task");
  while (const dirent* const thread = readdir(threads)) {
    std::string name;
    std::getline(std::ifstream("/proc/self/task/" + std::string(thread->d_name) + "/comm"), name);
    if (name == "strata-blocking" &&
        syscall(SYS_tgkill, getpid(), std::atoi(thread->d_name), own_signal) != 0)
      SAME(errno, ESRCH);  // an idle one has ended meanwhile
  }
  closedir(threads);
}

void disturbed_late() {
  const int semaphore = semget(IPC_PRIVATE, 1, 0600);
  sembuf take{0, -1, 0};
  sembuf give{0, 1, 0};
  const int queue = msgget(IPC_PRIVATE, 0600);
  struct message {
    long kind = 1;
    char text = 'd';
  };
  int ends[2] = {-1, -1};
  SAME(pipe(ends), 0);
  sigset_t none;
  sigemptyset(&none);
  const auto disturb = [] {
    for (int i = 0; i < 3; ++i) {
      usleep(1000);
      disturb_who_waits_for_others();
    }
    usleep(1000);
  };
  beside([&] { SAME(semop(semaphore, &take, 1), 0); },
         [&] {
           while (semctl(semaphore, 0, GETNCNT) != 1) sched_yield();
           disturb();
           SAME(semop(semaphore, &give, 1), 0);
         });
  beside(
      [&] {
        message got;
        SAME(msgrcv(queue, &got, sizeof got.text, 0, 0), 1);
      },
      [&] {
        const message one;
        disturb();
        SAME(msgsnd(queue, &one, sizeof one.text, 0), 0);
      });
  beside(
      [&] {
        pollfd one{ends[0], POLLIN, 0};
        SAME(ppoll(&one, 1, nullptr, &none), 1);
      },
      [&] {
        disturb();
        SAME(write(ends[1], "x", 1), 1);
      });
  SAME(semctl(semaphore, 0, IPC_RMID), 0);
  SAME(msgctl(queue, IPC_RMID, nullptr), 0);
  close(ends[0]);
  close(ends[1]);
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
  // And one that goes on when its stream has been read to the end.
  const std::string late = "exec >&-; " + command;
  beside(
      [&] {
        std::FILE* const stream = popen(late.c_str(), "r");
        SAME(stream != nullptr, true);
        SAME(std::fgetc(stream), EOF);
        const int status = pclose(stream);
        SAME(WIFEXITED(status), true);
        SAME(WEXITSTATUS(status), 5);
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
  system_v();
  posix_queues();
  disturbed_late();
  commands();
  return pthread_programs::status_of_all();
}

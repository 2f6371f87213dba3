// SPDX-License-Identifier: Apache-2.0
// What a handler ends: the waits of POSIX that it does, all of them.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

static int listener() {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  SAME(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)), 0);
  SAME(listen(fd, 1), 0);
  return fd;
}

namespace {

struct a_wait {
  const char* name;
  std::function<long()> call;
  bool restarts;  // after a handler with SA_RESTART
};

// What they wait for does not come.
class nothing_to_come {
 public:
  nothing_to_come() {
    SAME(socketpair(AF_UNIX, SOCK_STREAM, 0, pair_.data()), 0);
    server_ = listener();
    epoll_ = epoll_create1(0);
    epoll_event e{};
    e.events = EPOLLIN;
    SAME(epoll_ctl(epoll_, EPOLL_CTL_ADD, pipe_.in, &e), 0);
    SAME(sem_init(&never_, 0, 0), 0);
    locked_ = memfd_create("strata-test", 0);
    other_ = open(("/proc/self/fd/" + std::to_string(locked_)).c_str(), O_RDWR);
    SAME(flock(locked_, LOCK_EX), 0);
    child_ = fork();
    if (child_ == 0) {
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      char c = 0;
      close(pipe_.out);
      _exit(read(pipe_.in, &c, 1) < 0 ? 1 : 0);
    }
  }
  ~nothing_to_come() {
    for (const int fd : {pair_[0], pair_[1], server_, epoll_, locked_, other_}) close(fd);
    SAME(kill(child_, SIGKILL), 0);
    SAME(waitpid(child_, nullptr, 0), child_);
  }
  nothing_to_come(const nothing_to_come&) = delete;
  nothing_to_come& operator=(const nothing_to_come&) = delete;

  std::vector<a_wait> waits() {
    char* const c = &byte_;
    const auto fds = [this] {
      return std::array<pollfd, 2>{{{pipe_.in, POLLIN, 0}, {server_, POLLIN, 0}}};
    };
    return {
        {"read", [=, this] { return read(pipe_.in, c, 1); }, true},
        {"recv", [=, this] { return recv(pair_[0], c, 1, 0); }, true},
        {"peek", [=, this] { return recv(pair_[0], c, 1, MSG_PEEK | MSG_WAITALL); }, true},
        {"accept", [this] { return accept(server_, nullptr, nullptr); }, true},
        {"flock", [this] { return flock(other_, LOCK_EX); }, true},
        {"waitpid", [this] { return waitpid(child_, nullptr, 0); }, true},
        {"wait", [] { return wait(nullptr); }, true},
        {"sem_wait", [this] { return sem_wait(&never_); }, true},
        {"poll",
         [=] {
           auto all = fds();
           return poll(all.data(), all.size(), -1);
         },
         false},
        {"ppoll",
         [=] {
           auto all = fds();
           return ppoll(all.data(), all.size(), &long_time, nullptr);
         },
         false},
        {"ppoll with a mask",
         [=] {
           auto all = fds();
           const sigset_t none = set_of({});
           return ppoll(all.data(), all.size(), nullptr, &none);
         },
         false},
        {"select",
         [this] {
           fd_set to_read;
           FD_ZERO(&to_read);
           FD_SET(pipe_.in, &to_read);
           return select(pipe_.in + 1, &to_read, nullptr, nullptr, nullptr);
         },
         false},
        {"pselect with a mask",
         [] {
           const sigset_t none = set_of({});
           return pselect(0, nullptr, nullptr, nullptr, nullptr, &none);
         },
         false},
        {"epoll_wait",
         [this] {
           epoll_event e{};
           return epoll_wait(epoll_, &e, 1, -1);
         },
         false},
        {"nanosleep", [] { return nanosleep(&long_time, nullptr); }, false},
        {"usleep", [] { return usleep(900'000'000); }, false},
        {"sleep", [] { return sleep(3600) > 3000 ? refused() : 0; }, false},
        {"clock_nanosleep",
         [] {
           errno = clock_nanosleep(CLOCK_REALTIME, 0, &long_time, nullptr);
           return errno == 0 ? 0 : -1;
         },
         false},
        {"sem_timedwait",
         [this] {
           timespec end;
           clock_gettime(CLOCK_REALTIME, &end);
           end.tv_sec += 3600;
           return sem_timedwait(&never_, &end);
         },
         false},
        {"pause", [] { return pause(); }, false},
        {"sigsuspend",
         [] {
           const sigset_t none = set_of({});
           return sigsuspend(&none);
         },
         false},
        {"sigwaitinfo",
         [] {
           const sigset_t usr1 = set_of({SIGUSR1});
           return sigwaitinfo(&usr1, nullptr);
         },
         false},
        {"sigtimedwait",
         [] {
           const sigset_t usr1 = set_of({SIGUSR1});
           return sigtimedwait(&usr1, nullptr, &long_time);
         },
         false},
    };
  }

 private:
  static long refused() {
    errno = EINTR;
    return -1;
  }

  a_pipe pipe_;
  std::array<int, 2> pair_{-1, -1};
  int server_ = -1;
  int epoll_ = -1;
  int locked_ = -1;
  int other_ = -1;
  pid_t child_ = -1;
  sem_t never_;
  char byte_ = 0;
};

}  // namespace

static void ends(const a_wait& w) {
  handle(SIGALRM, 0);
  const int before = wrong;
  {
    const ticks often;
    interrupted(w.call());
  }
  SAME(handled > 0, true);
  if (wrong != before) std::printf("in %s\n", w.name);
}

// Not begun again, whatever the handler wants.
static void ends_with_restart(const a_wait& w) {
  handle(SIGALRM, SA_RESTART);
  const int before = wrong;
  {
    const ticks often;
    interrupted(w.call());
  }
  if (wrong != before) std::printf("in %s, with SA_RESTART\n", w.name);
}

void all_waits() {
  nothing_to_come nothing;
  const sigset_t usr1 = set_of({SIGUSR1});
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  for (const a_wait& w : nothing.waits()) {
    ends(w);
    if (!w.restarts) ends_with_restart(w);
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
}

// One that stops by a flag.
void server() {
  const int fd = listener();
  handle(SIGTERM, 0, &stop);
  stopped = 0;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended) {
      kill(getpid(), SIGTERM);
      sched_yield();
    }
  });
  while (stopped == 0) {
    const int connection = accept(fd, nullptr, nullptr);
    SAME(connection, -1);
  }
  ended = true;
  other.join();
  close(fd);
}

}  // namespace process_signals

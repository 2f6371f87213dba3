// SPDX-License-Identifier: Apache-2.0
// A program whose main() and threads wait while signals come for the process: natively, and as it
// is under `strata pthread`. Status 0 if all is right.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> wrong{0};

void same_(long got, long wanted, const char* what, int line) {
  if (got != wanted && wrong.fetch_add(1) < 20)
    std::printf("wrong: line %d: %s is %ld, not %ld (errno %d)\n", line, what, got, wanted, errno);
}
#define SAME(a, b) same_(static_cast<long>(a), static_cast<long>(b), #a, __LINE__)

std::atomic<int> handled{0};
void count_one(int) { ++handled; }

void handle(int number, int flags, void (*handler)(int) = &count_one) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  SAME(sigaction(number, &action, nullptr), 0);
  handled = 0;
}

// SIGALRM again and again: one that comes before a wait ends none.
class ticks {
 public:
  ticks() {
    const itimerval often{{0, 1000}, {0, 1000}};
    SAME(setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ~ticks() {
    const itimerval never{};
    SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
  }
  ticks(const ticks&) = delete;
  ticks& operator=(const ticks&) = delete;
};

struct a_pipe {
  int in = -1;
  int out = -1;
  a_pipe() {
    std::array<int, 2> both{};
    SAME(pipe(both.data()), 0);
    in = both[0];
    out = both[1];
  }
  ~a_pipe() {
    close(in);
    close(out);
  }
  a_pipe(const a_pipe&) = delete;
  a_pipe& operator=(const a_pipe&) = delete;
};

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int n : numbers) sigaddset(&set, n);
  return set;
}

bool is_blocked(int number) {
  sigset_t now;
  SAME(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
  return sigismember(&now, number) == 1;
}

// ---- what a handler ends ----

void interrupted(long answer) {
  SAME(answer, -1);
  SAME(errno, EINTR);
}

int listener() {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  SAME(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)), 0);
  SAME(listen(fd, 1), 0);
  return fd;
}

const timespec long_time{3600, 0};

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

void ends(const a_wait& w) {
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
void ends_with_restart(const a_wait& w) {
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

// Begun again, until a handler brings what it waits for.
int told_by_handler = -1;
sem_t posted_by_handler;
void bring(int) {
  if (++handled == 3) {
    (void)!write(told_by_handler, "x", 1);
    sem_post(&posted_by_handler);
  }
}

void restarts() {
  const a_pipe p;
  told_by_handler = p.out;
  SAME(sem_init(&posted_by_handler, 0, 0), 0);
  char c = 0;
  handle(SIGALRM, SA_RESTART, &bring);
  {
    const ticks often;
    SAME(read(p.in, &c, 1), 1);
    SAME(handled >= 3, true);
    SAME(sem_wait(&posted_by_handler), 0);
    handled = 0;
    SAME(sem_wait(&posted_by_handler), 0);
    SAME(handled >= 3, true);
    SAME(read(p.in, &c, 1), 1);
  }
  SAME(c, 'x');
}

// Waits for locks and threads end by nothing but what they are for.
void goes_on() {
  handle(SIGALRM, 0);
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  SAME(pthread_mutex_lock(&m), 0);
  const ticks often;
  std::thread t([&] {
    SAME(pthread_mutex_lock(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  });
  while (handled < 5) sched_yield();
  SAME(pthread_mutex_unlock(&m), 0);
  t.join();
  std::thread waits([] {
    const int before = handled;
    while (handled < before + 5) sched_yield();
  });
  waits.join();
}

// ---- a server that stops by a flag ----

volatile sig_atomic_t stopped = 0;
void stop(int) { stopped = 1; }

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

// main() does not wait at all.
void computes() {
  handle(SIGALRM, 0);
  const ticks often;
  unsigned long n = 0;
  while (handled < 20) asm volatile("" : "+r"(n) : : "memory");
}

// ---- what a handler is told ----

std::atomic<int> sender{0};
std::atomic<int> code{0};
std::atomic<int> value{0};
std::atomic<bool> has_mask{false};
void note(int number, siginfo_t* info, void*) {
  sender = info->si_pid;
  code = info->si_code;
  value = info->si_value.sival_int;
  has_mask = is_blocked(number) && is_blocked(SIGUSR2);
  ++handled;
}

void told() {
  struct sigaction action {};
  action.sa_sigaction = &note;
  action.sa_flags = SA_SIGINFO;
  action.sa_mask = set_of({SIGUSR2});
  SAME(sigaction(SIGUSR1, &action, nullptr), 0);
  struct sigaction now {};
  SAME(sigaction(SIGUSR1, nullptr, &now), 0);
  SAME(now.sa_sigaction == &note, true);
  SAME(now.sa_flags & SA_SIGINFO, SA_SIGINFO);
  SAME(sigismember(&now.sa_mask, SIGUSR2), 1);
  handled = 0;
  const pid_t child = fork();
  if (child == 0) {
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  while (handled == 0) usleep(1000);
  SAME(sender, child);
  SAME(code, SI_USER);
  SAME(has_mask, true);
  int n = 0;
  while ((n = static_cast<int>(waitpid(child, nullptr, 0))) < 0 && errno == EINTR) {
  }
  SAME(n, child);
  handled = 0;
  sigval v{};
  v.sival_int = 4711;
  SAME(sigqueue(getpid(), SIGUSR1, v), 0);
  while (handled == 0) usleep(1000);
  SAME(code, SI_QUEUE);
  SAME(value, 4711);
  SAME(is_blocked(SIGUSR1), false);
  SAME(is_blocked(SIGUSR2), false);
}

std::atomic<int> sum{0};
void add_value(int, siginfo_t* info, void*) {
  sum = sum * 10 + info->si_value.sival_int;
  ++handled;
}

// Real-time signals are queued, for the process and for a thread.
void queued() {
  const int number = SIGRTMIN + 3;
  const sigset_t it = set_of({number});
  struct sigaction action {};
  action.sa_sigaction = &add_value;
  action.sa_flags = SA_SIGINFO;
  SAME(sigaction(number, &action, nullptr), 0);
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  for (const bool to_thread : {false, true}) {
    handled = 0;
    sum = 0;
    for (int i = 1; i <= 3; ++i) {
      sigval v{};
      v.sival_int = i;
      SAME(to_thread ? pthread_sigqueue(pthread_self(), number, v) : sigqueue(getpid(), number, v),
           0);
    }
    SAME(handled, 0);
    SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
    while (handled < 3) usleep(1000);
    SAME(sum, 123);
    SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  }
  SAME(raise(number), 0);
  SAME(raise(number), 0);
  for (const bool is_left : {true, false}) {
    int got = 0;
    sigset_t now;
    SAME(sigwait(&it, &got), 0);
    SAME(got, number);
    SAME(sigpending(&now), 0);
    SAME(sigismember(&now, number), is_left);
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
}

// ---- how handlers are set ----

// Deprecated, and used all the same.
int interrupts(int number, int on) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return siginterrupt(number, on);
#pragma GCC diagnostic pop
}

void setting() {
  (void)signal(SIGUSR2, SIG_DFL);
  SAME(signal(SIGUSR2, &count_one) == SIG_DFL, true);
  SAME(signal(SIGUSR2, SIG_IGN) == &count_one, true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(signal(SIGUSR2, &stop) == SIG_IGN, true);
  struct sigaction now {};
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_handler == &stop, true);
  SAME(now.sa_flags & (SA_RESTART | SA_SIGINFO | static_cast<int>(SA_RESETHAND)), SA_RESTART);
  SAME(interrupts(SIGUSR2, 1), 0);
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_flags & SA_RESTART, 0);
  SAME(interrupts(SIGUSR2, 0), 0);
  // Once.
  handle(SIGUSR2, static_cast<int>(SA_RESETHAND));
  SAME(kill(getpid(), SIGUSR2), 0);
  while (handled == 0) usleep(1000);
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_handler == SIG_DFL, true);
  SAME(sigaction(SIGKILL, &now, nullptr), -1);
  SAME(errno, EINVAL);
  SAME(sigaction(1000, &now, nullptr), -1);
  SAME(errno, EINVAL);
}

// ---- what is blocked ----

void blocked() {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(handled, 0);
  sigset_t now;
  SAME(sigpending(&now), 0);
  SAME(sigismember(&now, SIGUSR2), 1);
  siginfo_t info{};
  SAME(sigwaitinfo(&usr2, &info), SIGUSR2);
  SAME(info.si_signo, SIGUSR2);
  SAME(info.si_pid, getpid());
  const timespec little{0, 1000};
  const timespec nothing{0, 0};
  SAME(sigtimedwait(&usr2, &info, &little), -1);
  SAME(errno, EAGAIN);
  SAME(sigtimedwait(&usr2, &info, &nothing), -1);
  SAME(errno, EAGAIN);
  const timespec invalid{0, -1};
  SAME(sigtimedwait(&usr2, &info, &invalid), -1);
  SAME(errno, EINVAL);
  int number = 0;
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(sigwait(&usr2, &number), 0);
  SAME(number, SIGUSR2);
  const int fd = signalfd(-1, &usr2, 0);
  SAME(kill(getpid(), SIGUSR2), 0);
  signalfd_siginfo about{};
  SAME(read(fd, &about, sizeof about), sizeof about);
  SAME(about.ssi_signo, SIGUSR2);
  close(fd);
  SAME(handled, 0);
  // Let in by the wait alone, and before it or while it lasts.
  SAME(kill(getpid(), SIGUSR2), 0);
  const sigset_t none = set_of({});
  interrupted(sigsuspend(&none));
  SAME(handled, 1);
  SAME(is_blocked(SIGUSR2), true);
  const pid_t child = fork();
  if (child == 0) {
    kill(getppid(), SIGUSR2);
    _exit(0);
  }
  interrupted(sigsuspend(&none));
  SAME(handled, 2);
  SAME(waitpid(child, nullptr, 0), child);
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  // Not once it is blocked.
  handle(SIGALRM, 0);
  const sigset_t alarms = set_of({SIGALRM});
  const ticks often;
  for (int i = 0; i < 50; ++i) {
    usleep(200);
    SAME(pthread_sigmask(SIG_BLOCK, &alarms, nullptr), 0);
    const int before = handled;
    for (int j = 0; j < 20; ++j) sched_yield();
    SAME(handled, before);
    SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
  }
}

// main() has blocked it, and one thread has not: that one's waits end.
void another_thread() {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  const a_pipe p;
  sem_t never;
  SAME(sem_init(&never, 0, 0), 0);
  for (const bool reads : {true, false}) {
    std::atomic<bool> ended{false};
    std::thread t([&] {
      char c = 0;
      SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
      interrupted(reads ? read(p.in, &c, 1) : sem_wait(&never));
      ended = true;
    });
    while (!ended) {
      SAME(kill(getpid(), SIGUSR2), 0);
      usleep(500);
    }
    t.join();
  }
  // What came after its end.
  const timespec at_once{0, 0};
  (void)sigtimedwait(&usr2, nullptr, &at_once);
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
}

// Handlers post, whatever they interrupt.
sem_t posted;
void post(int) { sem_post(&posted); }

void posting() {
  SAME(sem_init(&posted, 0, 0), 0);
  handle(SIGALRM, SA_RESTART, &post);
  const itimerval often{{0, 100}, {0, 100}};
  SAME(setitimer(ITIMER_REAL, &often, nullptr), 0);
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i)
    all.emplace_back([] {
      for (int k = 0; k < 100; ++k) {
        while (sem_wait(&posted) != 0) SAME(errno, EINTR);
      }
    });
  for (int k = 0; k < 100; ++k) {
    std::thread([] {}).join();
    while (sem_wait(&posted) != 0) SAME(errno, EINTR);
  }
  for (std::thread& t : all) t.join();
  const itimerval never{};
  SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
}

// ---- handlers that change masks, as many do, and give them back ----

std::atomic<bool> mask_was_right{true};
void hold_and_restore(int number) {
  const sigset_t it = set_of({number});
  sigset_t before;
  sigset_t now;
  if (sigprocmask(SIG_BLOCK, &it, &before) != 0 || sigismember(&before, number) != 1)
    mask_was_right = false;
  if (sigprocmask(SIG_SETMASK, &before, nullptr) != 0 ||
      sigprocmask(SIG_BLOCK, nullptr, &now) != 0 || sigismember(&now, number) != 1)
    mask_was_right = false;
  ++handled;
}

// More come afterwards, whether main() waits or computes.
void masks_in_handlers() {
  handle(SIGALRM, 0, &hold_and_restore);
  const a_pipe p;
  sem_t never;
  SAME(sem_init(&never, 0, 0), 0);
  for (int i = 0; i < 20; ++i) {
    const ticks often;
    interrupted(sem_wait(&never));
    pollfd one{p.in, POLLIN, 0};
    interrupted(poll(&one, 1, -1));
    const int before = handled;
    while (handled < before + 2) asm volatile("" : : : "memory");
    SAME(is_blocked(SIGALRM), false);
  }
  SAME(mask_was_right, true);
}

// So many that they cannot all be handled, while main() is in the runtime nearly all the time.
void storm() {
  SAME(sem_init(&posted, 0, 0), 0);
  handle(SIGALRM, SA_RESTART, &post);
  const itimerval always{{0, 20}, {0, 20}};
  const itimerval never{};
  SAME(setitimer(ITIMER_REAL, &always, nullptr), 0);
  std::atomic<bool> ended{false};
  std::thread sends([&] {
    while (!ended) {
      for (int i = 0; i < 100; ++i) SAME(kill(getpid(), SIGALRM), 0);
      sched_yield();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    SAME(sem_post(&posted), 0);
    while (sem_wait(&posted) != 0) SAME(errno, EINTR);
  }
  SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
  ended = true;
  sends.join();
  SAME(signal(SIGALRM, SIG_IGN) == &post, true);
}

// Deprecated, and used all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void old_ways() {
  handled = 0;
  stopped = 0;
  SAME(sigset(SIGUSR2, &stop) != SIG_ERR, true);
  SAME(sigset(SIGUSR2, SIG_HOLD) == &stop, true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(sigset(SIGUSR2, &count_one) == SIG_HOLD, true);  // let in when the handler is there
  while (handled < 1) usleep(1000);
  SAME(stopped, 0);
  SAME(is_blocked(SIGUSR2), false);
  SAME(sighold(SIGUSR2), 0);
  SAME(is_blocked(SIGUSR2), true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(handled, 1);
  interrupted(sigpause(SIGUSR2));
  SAME(handled, 2);
  SAME(is_blocked(SIGUSR2), true);
  SAME(sigrelse(SIGUSR2), 0);
  SAME(is_blocked(SIGUSR2), false);
  SAME(sighold(1000), -1);
  (void)signal(SIGUSR2, SIG_DFL);
}
#pragma GCC diagnostic pop

// In a child of another thread than main(), which is not there, and neither is who waits.
void child_of_a_thread() {
  std::fflush(stdout);
  std::thread parent([] {
    const pid_t child = fork();
    if (child == 0) {
      wrong = 0;
      handle(SIGALRM, 0);
      {
        const ticks often;
        interrupted(nanosleep(&long_time, nullptr));
        const sigset_t alarms = set_of({SIGALRM});
        SAME(pthread_sigmask(SIG_BLOCK, &alarms, nullptr), 0);
        std::thread waits([&] {
          SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
          interrupted(pause());
        });
        waits.join();
        SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
        const int before = handled;
        while (handled < before + 5) sched_yield();
      }
      std::fflush(stdout);
      _exit(wrong == 0 ? 0 : 1);
    }
    int status = -1;
    SAME(waitpid(child, &status, 0), child);
    SAME(status, 0);
  });
  parent.join();
}

// In a child whose thread is the only one.
void in_a_child() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    handle(SIGALRM, 0);
    {
      const ticks often;
      interrupted(nanosleep(&long_time, nullptr));
      interrupted(pause());
      std::thread([] {}).join();
    }
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = -1;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
}

}  // namespace

int main(int argc, char** argv) {
  struct part {
    const char* name;
    void (*run)();
  };
  constexpr std::array parts{
      part{"all_waits", &all_waits}, part{"restarts", &restarts},
      part{"server", &server},       part{"goes_on", &goes_on},
      part{"computes", &computes},   part{"told", &told},
      part{"queued", &queued},       part{"setting", &setting},
      part{"blocked", &blocked},     part{"another_thread", &another_thread},
      part{"posting", &posting},     part{"in_a_child", &in_a_child},
      part{"storm", &storm},         part{"masks_in_handlers", &masks_in_handlers},
      part{"old_ways", &old_ways},   part{"child_of_a_thread", &child_of_a_thread},
  };
  // Without threads, and with one that waits.
  for (const bool alone : {true, false}) {
    sem_t end;
    sem_init(&end, 0, 0);
    std::thread company;
    if (!alone)
      company = std::thread([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        while (sem_wait(&end) != 0) {
        }
      });
    for (const part& one : parts) {
      if (argc > 1 && std::strcmp(argv[1], one.name) != 0) continue;
      const int before = wrong;
      one.run();
      std::printf("%s %s%s\n", wrong == before ? "ok" : "not ok", one.name,
                  alone ? "" : ", with another thread");
      std::fflush(stdout);
    }
    if (alone) continue;
    sem_post(&end);
    company.join();
  }
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}

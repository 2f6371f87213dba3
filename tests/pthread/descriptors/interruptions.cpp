// SPDX-License-Identifier: Apache-2.0
// Waits that are ended from elsewhere: by a cancellation or by a signal.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

// In a thread that is cancelled there; it does not come back.
template <class Waits>
static void cancelled(Waits waits) {
  struct state {
    Waits& waits;
    std::atomic<bool> asks{false};
    std::atomic<bool> unwound{false};
  } s{waits, {}, {}};
  pthread_t t{};
  const auto body = [](void* argument) -> void* {
    auto& mine = *static_cast<state*>(argument);
    struct notes {
      std::atomic<bool>& unwound;
      ~notes() { unwound = true; }
    } const note{mine.unwound};
    mine.asks = true;
    mine.waits();
    return nullptr;
  };
  SAME(pthread_create(&t, nullptr, body, &s), 0);
  while (!s.asks) sched_yield();
  sched_yield();
  SAME(pthread_cancel(t), 0);
  void* result = nullptr;
  SAME(pthread_join(t, &result), 0);
  SAME(result == PTHREAD_CANCELED, true);
  SAME(s.unwound, true);
}

void cancellation() {
  const a_pipe p;
  a_listener server(AF_UNIX, 1);
  char c = 0;
  cancelled([&] { (void)!read(p.in, &c, 1); });
  cancelled([&] { accept(server.fd, nullptr, nullptr); });
  cancelled([&] {
    std::array<pollfd, 2> fds{{{p.in, POLLIN, 0}, {server.fd, POLLIN, 0}}};
    poll(fds.data(), fds.size(), -1);
  });
  const std::array<a_pipe, 20> many;
  const auto poll_many = [&] {
    std::array<pollfd, 20> fds{};
    for (std::size_t i = 0; i < many.size(); ++i) fds[i] = {many[i].in, POLLIN, 0};
    return poll(fds.data(), fds.size(), -1);
  };
  cancelled(poll_many);
  cancelled([&] {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(p.in, &reads);
    select(p.in + 1, &reads, nullptr, nullptr, nullptr);
  });
  cancelled([&] {
    sigset_t none;
    sigemptyset(&none);
    pollfd one{p.in, POLLIN, 0};
    ppoll(&one, 1, nullptr, &none);
  });
  // Also where there is no time to wait.
  cancelled([&] {
    for (;;) {
      pollfd one{p.in, POLLIN, 0};
      poll(&one, 1, 0);
      sched_yield();
    }
  });
  // One of two who wait: the other one gets what comes.
  std::thread other([&] { SAME(get(p.in), 'o'); });
  cancelled([&] { (void)!read(p.in, &c, 1); });
  put(p.out, 'o');
  other.join();
  // Also one that never has to wait.
  cancelled([&] {
    for (;;) {
      put(p.out);
      get(p.in);
      sched_yield();
    }
  });
}

// SIGUSR1 to a thread in waits(), until done() says that it need not come again.
template <class Waits, class Done>
static void signalled(int flags, Waits waits, Done done) {
  struct sigaction action {};
  action.sa_handler = &count_one;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
  handled = 0;
  std::atomic<bool> ended{false};
  std::thread t([&] {
    waits();
    ended = true;
  });
  while (!ended && !done()) {
    pthread_kill(t.native_handle(), SIGUSR1);
    sched_yield();
  }
  t.join();
  SAME(handled > 0, true);
}

void interruption() {
  const a_pipe p;
  const a_socketpair s;
  char c = 0;
  const auto never = [] { return false; };
  const auto interrupted = [](long answer) {
    SAME(answer, -1);
    SAME(errno, EINTR);
  };
  signalled(
      0, [&] { interrupted(read(p.in, &c, 1)); }, never);
  signalled(
      0, [&] { interrupted(recv(s.in, &c, 1, 0)); }, never);
  // Not begun again, whatever the handler wants.
  pollfd one{p.in, POLLIN, 0};
  signalled(
      SA_RESTART, [&] { interrupted(poll(&one, 1, -1)); }, never);
  std::array<pollfd, 20> many{};
  many.fill(one);
  signalled(
      SA_RESTART, [&] { interrupted(poll(many.data(), many.size(), -1)); }, never);
  const timeval long_time{3600, 0};
  SAME(setsockopt(s.in, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time), 0);
  signalled(
      SA_RESTART, [&] { interrupted(recv(s.in, &c, 1, 0)); }, never);
  // Behind another one, by who cannot be cancelled.
  std::thread other([&] { SAME(get(p.in), 'b'); });
  signalled(
      0,
      [&] {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        interrupted(read(p.in, &c, 1));
      },
      never);
  put(p.out, 'b');
  other.join();
  // Begun again.
  std::atomic<bool> told{false};
  signalled(
      SA_RESTART, [&] { SAME(read(p.in, &c, 1), 1); },
      [&] {
        if (handled < 3) return false;
        if (!told.exchange(true)) put(p.out);
        return true;
      });
  // A part has been written.
  const std::vector<char> all = message_of(much);
  for (const int flags : {0, SA_RESTART}) {
    const a_socketpair full;
    signalled(
        flags,
        [&] {
          const ssize_t n = write(full.out, all.data(), much);
          SAME(n > 0 && n < static_cast<ssize_t>(much), true);
        },
        never);
  }
  // Blocked but while the wait lasts.
  sigset_t usr1;
  sigset_t before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
  signalled(
      0, [&] { interrupted(ppoll(&one, 1, nullptr, &before)); }, never);
  signalled(
      0, [&] { interrupted(pselect(0, nullptr, nullptr, nullptr, nullptr, &before)); }, never);
  SAME(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

// A signal for the process that all threads have blocked but the one that waits.
void signals_for_all() {
  struct sigaction action {};
  action.sa_handler = &count_one;
  sigaction(SIGUSR2, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  const a_pipe p;
  handled = 0;
  beside(
      [&] {
        pollfd one{p.in, POLLIN, 0};
        SAME(ppoll(&one, 1, nullptr, &none), -1);
        SAME(errno, EINTR);
        SAME(handled, 1);
      },
      [] { SAME(kill(getpid(), SIGUSR2), 0); });
}

// A handler may write to what has room, wherever it interrupts.
void handlers() {
  static int nowhere = -1;
  static int counter = -1;
  nowhere = open("/dev/null", O_WRONLY);
  counter = eventfd(0, 0);
  constexpr int enough = 200;
  handled = 0;
  const auto write_to_both = [](int) {
    const int error = errno;
    const std::uint64_t one = 1;
    (void)!write(nowhere, &one, sizeof one);
    (void)!write(counter, &one, sizeof one);
    errno = error;
    ++handled;
  };
  signal(SIGALRM, write_to_both);
  const itimerval often{{0, 200}, {0, 200}};
  SAME(setitimer(ITIMER_REAL, &often, nullptr), 0);
  const auto work = [] {
    while (handled < enough) {
      const a_pipe p;
      const int device = open("/dev/zero", O_RDONLY);
      std::vector<char> some(1000);
      SAME(read(device, some.data(), some.size()), some.size());
      close(device);
      beside([&] { SAME(get(p.in), 'h'); }, [&] { put(p.out, 'h'); });
    }
  };
  std::thread other(work);
  work();
  const itimerval never{};
  SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
  other.join();
  std::uint64_t n = 0;
  SAME(read(counter, &n, sizeof n), sizeof n);
  SAME(n >= enough, true);
  close(nowhere);
  close(counter);
}

// A handler takes itself what the thread waits for that it interrupts: what is there already, and
// what comes then.
static std::atomic<int> takers{0};
static void (*offer)();
static bool (*take)();
static std::atomic<bool> offers_itself{false};
static void take_here(int) {
  const int error = errno;
  ++takers;
  if (offers_itself) offer();
  SAME(take(), true);
  errno = error;
  ++handled;
}
static void taken_by_a_handler() {
  struct sigaction action {};
  action.sa_handler = &take_here;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  for (const bool itself : {true, false}) {
    offers_itself = itself;
    handled = 0;
    takers = 0;
    std::thread t([] {
      ++takers;
      SAME(take(), true);
    });
    while (takers < 1) sched_yield();
    let_others_wait();
    pthread_kill(t.native_handle(), SIGUSR1);
    while (takers < 2) sched_yield();
    if (!itself) offer();
    while (handled < 1) sched_yield();
    offer();
    t.join();
  }
}

void handlers_that_take() {
  static int fd = -1;
  static int other_end = -1;
  {
    static a_listener* server = nullptr;
    a_listener one(AF_UNIX, 4);
    server = &one;
    offer = [] {
      const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
      SAME(connect(client, server->at(), server->bytes), 0);
      close(client);
    };
    take = [] {
      const int taken = accept(server->fd, nullptr, nullptr);
      return taken >= 0 && close(taken) == 0;
    };
    taken_by_a_handler();
  }
  const a_terminal terminal;
  fd = terminal.in;
  other_end = terminal.out;
  offer = [] { SAME(write(other_end, "t\n", 2), 2); };
  take = [] {
    std::array<char, 16> line{};
    return read(fd, line.data(), line.size()) == 2 && line[0] == 't';
  };
  taken_by_a_handler();
}

}  // namespace descriptors

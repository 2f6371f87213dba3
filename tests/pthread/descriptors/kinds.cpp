// SPDX-License-Identifier: Apache-2.0
// What is neither pipe nor socket.
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

void counters_and_timers() {
  const int counter = eventfd(0, 0);
  std::uint64_t n = 0;
  beside(
      [&] {
        SAME(read(counter, &n, sizeof n), sizeof n);
        SAME(n, 5);
      },
      [&] {
        const std::uint64_t five = 5;
        SAME(write(counter, &five, sizeof five), sizeof five);
      });
  const std::uint64_t most = UINT64_MAX - 1;
  SAME(write(counter, &most, sizeof most), sizeof most);
  beside(
      [&] {
        const std::uint64_t one = 1;
        SAME(write(counter, &one, sizeof one), sizeof one);  // when there is room
      },
      [&] { SAME(read(counter, &n, sizeof n), sizeof n); });
  close(counter);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  beside([&] { SAME(read(timer, &n, sizeof n), sizeof n); },
         [&] {
           const itimerspec soon{{0, 0}, {0, 1'000'000}};
           SAME(timerfd_settime(timer, 0, &soon, nullptr), 0);
         });
  SAME(n, 1);
  close(timer);
}

// By the calls that the C library has for them, one after the other.
void counters_by_name() {
  const int there = eventfd(0, EFD_SEMAPHORE);
  const int back = eventfd(0, 0);
  constexpr int rounds = 100;
  eventfd_t n = 0;
  beside(
      [&] {
        for (int i = 1; i <= rounds; ++i) {
          eventfd_t got = 0;
          SAME(eventfd_read(there, &got), 0);
          SAME(got, 1);
          SAME(eventfd_write(back, static_cast<eventfd_t>(i)), 0);
        }
      },
      [&] {
        for (int i = 1; i <= rounds; ++i) {
          SAME(eventfd_write(there, 1), 0);
          SAME(eventfd_read(back, &n), 0);
          SAME(n, i);
        }
      });
  beside(
      [&] {
        SAME(eventfd_write(back, UINT64_MAX - 1), 0);
        SAME(eventfd_write(back, 1), 0);  // when there is room
        SAME(eventfd_read(there, &n), 0);
      },
      [&] {
        eventfd_t got = 0;
        SAME(eventfd_read(back, &got), 0);
        SAME(eventfd_write(there, 1), 0);
      });
  SAME(eventfd_read(-1, &n), -1);
  SAME(errno, EBADF);
  close(there);
  close(back);
}

void terminals() {
  const a_terminal both;
  beside(
      [&] {
        std::array<char, 16> line{};
        SAME(read(both.in, line.data(), line.size()), 4);
        SAME(std::memcmp(line.data(), "abc\n", 4), 0);
      },
      [&] {
        SAME(write(both.out, "ab", 2), 2);  // no line yet
        sched_yield();
        SAME(write(both.out, "c\n", 2), 2);
      });
}

// poll() says nothing of where such a read ends.
void terminals_that_need_no_bytes() {
  for (const bool has_time : {false, true}) {
    const a_terminal both;
    both.wait_for_bytes(has_time ? 1 : 0);
    std::thread([&] {
      std::array<char, 4> some{};
      const auto read_some = [&] { return read(both.in, some.data(), some.size()); };
      const auto read_nothing = [&] { SAME(read_some(), 0); };
      has_time ? takes_its_time(read_nothing) : read_nothing();
      SAME(write(both.out, "ab", 2), 2);
      ssize_t n = 0;
      while ((n = read_some()) == 0) sched_yield();  // the kernel takes it there by a thread
      SAME(n, 2);
      SAME(some[1], 'b');
      read_nothing();
      SAME(fcntl(both.in, F_SETFL, O_NONBLOCK), 0);
      SAME(read_some(), has_time ? -1 : 0);
    }).join();
  }
}

void files() {
  std::thread([] {
    const int file = memfd_create("strata-test", 0);
    const std::vector<char> all = message_of(much);
    SAME(write(file, all.data(), much), much);
    SAME(lseek(file, 0, SEEK_SET), 0);
    std::vector<char> got(2 * much);
    errno = 0;
    const int nothing = open("/dev/null", O_RDWR);
    SAME(write(nothing, all.data(), much), much);
    SAME(read(nothing, got.data(), 1), 0);
    close(nothing);
    const int counter = eventfd(1, 0);
    std::uint64_t n = 1;
    SAME(write(counter, &n, sizeof n), sizeof n);
    SAME(read(counter, &n, sizeof n), sizeof n);
    close(counter);
    SAME(errno, 0);
    SAME(read(file, got.data(), got.size()), much);
    SAME(read(file, got.data(), got.size()), 0);
    got.resize(much);
    SAME(got == all, true);
    close(file);
  }).join();
}

void names() {
  std::thread([] {
    passwd found{};
    passwd* result = nullptr;
    std::array<char, 4096> room{};
    SAME(getpwuid_r(0, &found, room.data(), room.size(), &result), 0);
    SAME(result == nullptr || result->pw_uid == 0, true);
    addrinfo* addresses = nullptr;
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    SAME(getaddrinfo("127.0.0.1", "80", &hints, &addresses), 0);
    std::array<char, 64> host{};
    SAME(getnameinfo(addresses->ai_addr, addresses->ai_addrlen, host.data(), host.size(), nullptr,
                     0, NI_NUMERICHOST),
         0);
    SAME(std::strcmp(host.data(), "127.0.0.1"), 0);
    freeaddrinfo(addresses);
    // What comes next waits as ever.
    const a_pipe p;
    beside([&] { SAME(get(p.in), 'n'); }, [&] { put(p.out, 'n'); });
  }).join();
}

}  // namespace descriptors

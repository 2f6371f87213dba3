// SPDX-License-Identifier: Apache-2.0
// The least that a request over TCP to a process that computes can cost, and its answer:
//   polled [US [N]]  the other process does nothing but look for it
//   woken  [US [N]]  it computes, on its core; a second thread of it sleeps in recv(), and runs
//                    where the kernel likes
// The asker computes for US microseconds before each of N requests, as a thief does that runs a
// token, and then looks for the answer again and again. The median counts.
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "bench/messages/pair.hpp"
#include "bench/messages/raw_pair.hpp"

namespace {

using bench::seconds_now;
using request = std::array<std::byte, 64>;

void send(int fd, const request& r) {
  if (::send(fd, r.data(), r.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(r.size()))
    bench::arguments::refuse("send failed");
}

// flags: MSG_DONTWAIT to try again and again, 0 to sleep.
request receive(int fd, int flags) {
  request r;
  ssize_t n;
  do {
    n = ::recv(fd, r.data(), r.size(), flags | MSG_WAITALL);
  } while (n < 0 && (errno == EAGAIN || errno == EINTR));
  if (n != static_cast<ssize_t>(r.size())) bench::arguments::refuse("recv failed");
  return r;
}

double ask(int fd, double pause, unsigned n) {
  std::vector<double> took;
  for (unsigned i = 0; i < n; ++i) {
    bench::spin_for(pause);
    const double began = seconds_now();
    send(fd, {});
    receive(fd, MSG_DONTWAIT);
    took.push_back(seconds_now() - began);
  }
  return bench::median(took);
}

void answer(int fd, int flags, unsigned n) {
  for (unsigned i = 0; i < n; ++i) send(fd, receive(fd, flags));
}

void answer_and_compute(int fd, const cpu_set_t& anywhere, unsigned n) {
  std::atomic<bool> done{false};
  std::thread second([&] {
    ::sched_setaffinity(0, sizeof anywhere, &anywhere);
    answer(fd, 0, n);
    done.store(true, std::memory_order_relaxed);
  });
  while (!done.load(std::memory_order_relaxed)) {
  }
  second.join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::arguments given(argc, argv);
  const std::string mode = given.rest.empty() ? "polled" : given.rest[0];
  if (mode != "polled" && mode != "woken")
    bench::arguments::refuse("the first argument is polled or woken");
  const auto next = [&](unsigned otherwise) {
    if (!given.rest.empty()) given.rest.erase(given.rest.begin());
    return given.number(otherwise, 1, 10'000'000);
  };
  const unsigned pause_us = next(20'000);
  const unsigned n = next(100);
  cpu_set_t anywhere;
  if (::sched_getaffinity(0, sizeof anywhere, &anywhere) != 0)
    bench::arguments::refuse("cannot tell the processors");
  int fds[2];
  bench::connect_pair(fds);
  double seconds = 0;
  bench::run_pair(
      false, [&] { seconds = ask(fds[0], pause_us * 1e-6, n); },
      [&] {
        mode == "polled" ? answer(fds[1], MSG_DONTWAIT, n)
                         : answer_and_compute(fds[1], anywhere, n);
      });
  return bench::print("messages", "raw_request", mode, 2, seconds, 1, true);
}

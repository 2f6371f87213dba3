// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/stop_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <strata/blocking.hpp>
#include <system_error>

namespace mapview {
namespace {

sigset_t which() {
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGINT);
  sigaddset(&some, SIGTERM);
  return some;
}

// A signal to all processes of a group reaches a node twice: `strata run` passes it on, too.
constexpr std::int64_t same_ns = 200'000'000;
std::atomic<std::int64_t> first_at_ns{0};

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void end_unless_it_is_the_same(int number) {
  if (now_ns() - first_at_ns.load(std::memory_order_relaxed) < same_ns) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // when this handler has returned
}

}  // namespace

stop_signals::stop_signals() {
  const sigset_t some = which();
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
  signals_ = ::signalfd(-1, &some, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

stop_signals::~stop_signals() { ::close(signals_); }

bool stop_signals::wait() {
  signalfd_siginfo one;
  if (strata::io::read(signals_, &one, sizeof one) < 0) return false;
  first_at_ns.store(now_ns(), std::memory_order_relaxed);
  for (const int number : {SIGINT, SIGTERM}) ::signal(number, &end_unless_it_is_the_same);
  // What has come meanwhile, too.
  while (::read(signals_, &one, sizeof one) == sizeof one) {
  }
  // One thread that takes them is enough.
  const sigset_t some = which();
  ::pthread_sigmask(SIG_UNBLOCK, &some, nullptr);
  return true;
}

void stop_signals::come() { ::kill(::getpid(), SIGTERM); }

}  // namespace mapview

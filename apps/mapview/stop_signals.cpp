// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/stop_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <strata/blocking.hpp>
#include <system_error>

#include "apps/mapview/ignored_signals.hpp"

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

// Set by come(), looked at by wait() after each signal. Before the signal, which may be one with
// another that waits to be ignored.
std::atomic<bool> has_been_called{false};

// Whether somebody waits, or will. come() keeps the lock until its signal has been sent: wait()
// finds that, or it is not sent.
std::mutex awaited_lock;
bool is_awaited = false;

void set_awaited(bool now) {
  const std::lock_guard lock(awaited_lock);
  is_awaited = now;
}

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

stop_signals::stop_signals()
    : ignores_interrupt_(is_ignored_here(SIGINT)), ignores_termination_(is_ignored_here(SIGTERM)) {
  const sigset_t some = which();
  ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
  signals_ = ::signalfd(-1, &some, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  has_been_called.store(false);
  set_awaited(true);
}

stop_signals::~stop_signals() { ::close(signals_); }

bool stop_signals::is_ignored(int number) const noexcept {
  return number == SIGINT ? ignores_interrupt_ : ignores_termination_;
}

bool stop_signals::wait() {
  signalfd_siginfo one;
  do {
    if (strata::io::read(signals_, &one, sizeof one) < 0) {
      set_awaited(false);
      return false;
    }
  } while (is_ignored(static_cast<int>(one.ssi_signo)) && !has_been_called.load());
  first_at_ns.store(now_ns(), std::memory_order_relaxed);
  set_awaited(false);
  for (const int number : {SIGINT, SIGTERM}) {
    if (!is_ignored(number)) ::signal(number, &end_unless_it_is_the_same);
  }
  // What has come meanwhile, too.
  while (::read(signals_, &one, sizeof one) == sizeof one) {
  }
  // One thread that takes them is enough.
  const sigset_t some = which();
  ::pthread_sigmask(SIG_UNBLOCK, &some, nullptr);
  return true;
}

void stop_signals::come() {
  const std::lock_guard lock(awaited_lock);
  if (!is_awaited) return;
  has_been_called.store(true);
  ::kill(::getpid(), SIGTERM);
}

}  // namespace mapview

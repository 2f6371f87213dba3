// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/tidy_end.hpp"

#include <utility>

#include "apps/mapview/ignored_signals.hpp"

namespace mapview {
namespace {

[[noreturn]] void end_by(int number) {
  ::signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  for (;;) ::raise(number);
}

}  // namespace

tidy_end::tidy_end() {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  waiting_ = std::thread([this] { wait_for_signals(); });
}

tidy_end::~tidy_end() {
  // To that thread alone. What has come to the process waits until the mask lets it in.
  sigval mark{};
  mark.sival_ptr = this;
  ::pthread_sigqueue(waiting_.native_handle(), SIGTERM, mark);
  waiting_.join();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void tidy_end::wait_for_signals() {
  siginfo_t about{};
  int number = 0;
  do {
    number = ::sigwaitinfo(&signals_, &about);
    if (number > 0 && about.si_code == SI_QUEUE && about.si_value.sival_ptr == this) return;
  } while (number < 0 || is_ignored_here(number));
  const std::lock_guard lock(mutex_);
  if (put_away_) put_away_();
  end_by(number);
}

tidy_end::task::task(tidy_end& end, std::function<void()> put_away) : end_(end) {
  const std::lock_guard lock(end_.mutex_);
  end_.put_away_ = std::move(put_away);
}

tidy_end::task::~task() {
  const std::lock_guard lock(end_.mutex_);
  end_.put_away_ = nullptr;
}

}  // namespace mapview

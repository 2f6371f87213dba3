// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/copies.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "pthread/holding.hpp"
#include "sync/spin_lock.hpp"
#include "threads/errno_here.hpp"

namespace strata::preload {

// All copies that there are. They lie on the stacks of those who wait, so nothing is allocated with
// the lock, which is held over a fork: what is listed is what the child gets.
struct descriptor_copy::list {
  static constinit detail::spin_lock lock;
  static constinit descriptor_copy* first;

  static void hold() { lock.lock(); }
  static void release() { lock.unlock(); }
  // Before the program can register handlers of its own, as in fork.cpp.
  [[gnu::constructor(101)]] static void watch_forks() {
    pthread_atfork(&hold, &release, &close_all);
  }
  // In the child: the files are open no longer than in the parent. Those who wait are not here.
  static void close_all() {
    for (descriptor_copy* one = first; one != nullptr; one = one->next_) {
      close(one->number_);
      one->number_ = -1;
    }
    first = nullptr;
    lock.unlock();
  }
};

constinit detail::spin_lock descriptor_copy::list::lock;
constinit descriptor_copy* descriptor_copy::list::first = nullptr;

namespace {

// At least three quarters of what the process may have open are left to the program.
int lowest_number() noexcept {
  constexpr rlim_t high = 4096;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return high;
  return static_cast<int>(std::min(high, limit.rlim_cur / 4 * 3));
}

}  // namespace

descriptor_copy::descriptor_copy(int fd) noexcept {
  const int error = detail::errno_here();
  const int lowest = lowest_number();
  {
    const detail::posix::holding held(list::lock);
    number_ = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (number_ >= 0) {
      next_ = list::first;
      if (next_ != nullptr) next_->previous_ = this;
      list::first = this;
    }
  }
  detail::set_errno_here(error);
}

descriptor_copy::~descriptor_copy() {
  const int error = detail::errno_here();
  {
    const detail::posix::holding held(list::lock);
    if (number_ < 0) return;
    (previous_ != nullptr ? previous_->next_ : list::first) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    close(number_);
  }
  detail::set_errno_here(error);
}

}  // namespace strata::preload

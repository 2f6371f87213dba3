// SPDX-License-Identifier: Apache-2.0
// The kernel is asked without waiting, before and after a wait, and has the say.
#include "pthread/preload/polls.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "os/clock.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "pthread/preload/masked.hpp"
#include "pthread/preload/select_reach.hpp"
#include "pthread/preload/wait_set.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/join.hpp"

extern "C" {
int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, std::size_t room);
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                std::size_t room);
}

namespace strata::preload {
namespace {

namespace posix = detail::posix;

constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr timespec at_once{0, 0};

bool is_valid(const timespec* t) noexcept {
  return t == nullptr || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < ns_per_s);
}

// From now; null: never.
std::int64_t deadline_after(const timespec* timeout) noexcept {
  if (timeout == nullptr) return detail::parking::never;
  const timespec end = posix::from_now(*timeout);
  return posix::deadline{CLOCK_MONOTONIC, &end}.to_ns();
}

timespec to_time(std::int64_t ns) noexcept {
  ns = std::max<std::int64_t>(ns, 0);
  return {static_cast<time_t>(ns / ns_per_s), static_cast<long>(ns % ns_per_s)};
}

// Null for -1.
const timespec* to_time(int timeout_ms, timespec& room) noexcept {
  if (timeout_ms < 0) return nullptr;
  room = to_time(std::int64_t{timeout_ms} * 1'000'000);
  return &room;
}

// A set is told of each of its descriptors by a system call, for each wait. Where they are many, a
// kernel thread waits for all of them by the call itself, as natively: but few such threads, which
// others need, too. All further waits have sets.
class wait_for_many {
 public:
  wait_for_many(const pollfd* fds, std::size_t count) noexcept
      : is_begun_(are_many(fds, count) && begin()) {}
  ~wait_for_many() {
    if (is_begun_) in_progress.fetch_sub(1, std::memory_order_relaxed);
  }
  wait_for_many(const wait_for_many&) = delete;
  wait_for_many& operator=(const wait_for_many&) = delete;
  explicit operator bool() const noexcept { return is_begun_; }

 private:
  static constexpr std::ptrdiff_t many = 12;
  static constexpr int at_once_max = 64;

  static bool are_many(const pollfd* fds, std::size_t count) noexcept {
    return std::count_if(fds, fds + count, [](const pollfd& p) { return p.fd >= 0; }) >= many;
  }
  static bool begin() noexcept {
    if (in_progress.fetch_add(1, std::memory_order_relaxed) < at_once_max) return true;
    in_progress.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  // A child has none of those who wait.
  [[gnu::constructor(101)]] static void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] { in_progress.store(0, std::memory_order_relaxed); });
  }

  // Relaxed: a number, by which nothing else is found.
  static constinit std::atomic<int> in_progress;
  const bool is_begun_;
};

constinit std::atomic<int> wait_for_many::in_progress{0};

// Asks `look(timeout)`, which waits for so long at most, until it does not say 0 or the time is
// over. `fds` tells what to wait for meanwhile.
template <class Look>
int look_until(std::int64_t deadline_ns, const pollfd* fds, std::size_t count, const Look& look) {
  if (!detail::nothing_else_is_ready()) {
    // Who is ready may be the one who brings it.
    detail::yield_stack();
    posix::act_on_cancellation();
    if (const int n = look(&at_once); n != 0) return n;
  }
  const auto look_to_the_end = [&] {
    const timespec left = to_time(deadline_ns - os::now_ns());
    return look(deadline_ns == detail::parking::never ? nullptr : &left);
  };
  if (const wait_for_many there(fds, count); there)
    return elsewhere(look_to_the_end, ended_by::handlers);
  wait_set set(fds, count);
  for (;;) {
    const wait_set::outcome end = set.wait(deadline_ns);
    if (end == wait_set::outcome::handled) return detail::fail_with(EINTR);
    if (end == wait_set::outcome::impossible) return look_to_the_end();
    if (const int n = look(&at_once); n != 0 || end == wait_set::outcome::late) return n;
  }
}

int poll_until(pollfd* fds, nfds_t count, const timespec* timeout) {
  const std::int64_t deadline_ns = deadline_after(timeout);
  return look_until(deadline_ns, fds, count,
                    [=](const timespec* t) { return ppoll(fds, count, t, nullptr); });
}

bool is_nothing(const timespec* t) noexcept {
  return t != nullptr && t->tv_sec == 0 && t->tv_nsec == 0;
}

// ---- select ----

// The sets of a call as they were given: the kernel writes its answer over them.
class given_sets {
 public:
  // Throws std::bad_alloc.
  given_sets(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions)
      : count_(count), sets_{to_read, to_write, exceptions} {
    words_ = (static_cast<std::size_t>(count) + bits - 1) / bits;
    if (words_ * sets_.size() > few_.size()) {
      many_.resize(words_ * sets_.size());
      words_of_all_ = many_.data();
    }
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(words(i), sets_[i], words_ * sizeof(long));
    }
  }

  void put_back() noexcept {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(sets_[i], words(i), words_ * sizeof(long));
    }
  }

  [[nodiscard]] std::vector<pollfd> to_poll() {
    constexpr std::array<short, 3> events{POLLIN, POLLOUT, POLLPRI};
    std::vector<pollfd> all;
    for (int fd = 0; fd < count_; ++fd) {
      pollfd one{fd, 0, 0};
      for (std::size_t i = 0; i < sets_.size(); ++i) {
        const auto n = static_cast<std::size_t>(fd);
        const bool is_in = sets_[i] != nullptr && (words(i)[n / bits] >> (n % bits) & 1U) != 0;
        if (is_in) one.events = static_cast<short>(one.events | events[i]);
      }
      if (one.events != 0) all.push_back(one);
    }
    return all;
  }

 private:
  static constexpr std::size_t bits = 8 * sizeof(unsigned long);
  [[nodiscard]] unsigned long* words(std::size_t set) noexcept {
    return words_of_all_ + set * words_;
  }

  const int count_;
  const std::array<fd_set*, 3> sets_;
  std::size_t words_ = 0;
  std::array<unsigned long, 3 * FD_SETSIZE / bits> few_;
  std::vector<unsigned long> many_;
  unsigned long* words_of_all_ = few_.data();
};

int select_until(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions,
                 const timespec* timeout) {
  const auto look = [=](const timespec* t) {
    return pselect(count, to_read, to_write, exceptions, t, nullptr);
  };
  const std::int64_t deadline_ns = deadline_after(timeout);
  try {
    given_sets given(count, to_read, to_write, exceptions);
    if (const int n = look(&at_once); n != 0) return n;
    given.put_back();
    const std::vector<pollfd> fds = given.to_poll();
    const auto look_again = [&](const timespec* t) {
      given.put_back();
      return look(t);
    };
    const int n = look_until(deadline_ns, fds.data(), fds.size(), look_again);
    if (n < 0) given.put_back();
    return n;
  } catch (const std::bad_alloc&) {
    return detail::fail_with(ENOMEM);
  }
}

int await_until(int fd, epoll_event* events, int count, const timespec* timeout) {
  const std::int64_t deadline_ns = deadline_after(timeout);
  const pollfd set{fd, POLLIN, 0};
  return look_until(deadline_ns, &set, 1, [=](const timespec* t) {
    constexpr std::int64_t longest_ms = 1'000'000'000;
    const std::int64_t ms =
        t == nullptr ? -1
                     : std::min(std::int64_t{t->tv_sec} * 1000 + (t->tv_nsec + 999'999) / 1'000'000,
                                longest_ms);
    return epoll_wait(fd, events, count, static_cast<int>(ms));
  });
}

}  // namespace

int poll_these(pollfd* fds, nfds_t count, int timeout_ms) {
  if (!can_be_suspended() || timeout_ms == 0) return poll(fds, count, timeout_ms);
  if (const int n = poll(fds, count, 0); n != 0) return n;
  timespec room;
  return poll_until(fds, count, to_time(timeout_ms, room));
}

int poll_these_checked(pollfd* fds, nfds_t count, int timeout_ms, std::size_t room) {
  // Which ends the process.
  if (room / sizeof(pollfd) < count) return __poll_chk(fds, count, timeout_ms, room);
  return poll_these(fds, count, timeout_ms);
}

int poll_these_with(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!can_be_suspended() || !is_valid(timeout)) return ppoll(fds, count, timeout, mask);
  const auto look = [=](const timespec* t, const sigset_t* m) { return ppoll(fds, count, t, m); };
  if (mask != nullptr) return wait_with_mask(*mask, deadline_after(timeout), look);
  if (const int n = look(&at_once, nullptr); n != 0 || is_nothing(timeout)) return n;
  return poll_until(fds, count, timeout);
}

int poll_these_with_checked(pollfd* fds, nfds_t count, const timespec* timeout,
                            const sigset_t* mask, std::size_t room) {
  if (room / sizeof(pollfd) < count) return __ppoll_chk(fds, count, timeout, mask, room);
  return poll_these_with(fds, count, timeout, mask);
}

int select_of(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions, timeval* timeout) {
  count = select_reach(count);
  const auto in_kernel = [=] { return select(count, to_read, to_write, exceptions, timeout); };
  const bool is_wrong =
      count < 0 || (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0));
  const bool is_short = timeout != nullptr && timeout->tv_sec == 0 && timeout->tv_usec == 0;
  if (!can_be_suspended() || is_wrong || is_short) return in_kernel();
  if (timeout == nullptr) return select_until(count, to_read, to_write, exceptions, nullptr);
  const timespec time{timeout->tv_sec + timeout->tv_usec / 1'000'000,
                      timeout->tv_usec % 1'000'000 * 1000};
  const std::int64_t deadline_ns = deadline_after(&time);
  const int n = select_until(count, to_read, to_write, exceptions, &time);
  // As Linux has it: what is left of the time.
  const timespec left = to_time(deadline_ns - os::now_ns());
  *timeout = {left.tv_sec, left.tv_nsec / 1000};
  return n;
}

int select_of_with(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions,
                   const timespec* timeout, const sigset_t* mask) {
  count = select_reach(count);
  if (!can_be_suspended() || count < 0 || !is_valid(timeout))
    return pselect(count, to_read, to_write, exceptions, timeout, mask);
  if (mask == nullptr && is_nothing(timeout))
    return pselect(count, to_read, to_write, exceptions, timeout, nullptr);
  if (mask == nullptr) return select_until(count, to_read, to_write, exceptions, timeout);
  try {
    given_sets given(count, to_read, to_write, exceptions);
    return wait_with_mask(*mask, deadline_after(timeout),
                          [&](const timespec* t, const sigset_t* m) {
                            given.put_back();
                            return pselect(count, to_read, to_write, exceptions, t, m);
                          });
  } catch (const std::bad_alloc&) {
    return detail::fail_with(ENOMEM);
  }
}

int await_epoll(int fd, epoll_event* events, int count, int timeout_ms) {
  return await_epoll_with(fd, events, count, timeout_ms, nullptr);
}

int await_epoll_with(int fd, epoll_event* events, int count, int timeout_ms, const sigset_t* mask) {
  if (!can_be_suspended() || (timeout_ms == 0 && mask == nullptr))
    return epoll_pwait(fd, events, count, timeout_ms, mask);
  timespec room;
  return await_epoll_until(fd, events, count, to_time(timeout_ms, room), mask);
}

int await_epoll_until(int fd, epoll_event* events, int count, const timespec* timeout,
                      const sigset_t* mask) {
  if (!can_be_suspended() || !is_valid(timeout))
    return epoll_pwait2(fd, events, count, timeout, mask);
  const auto look = [=](const timespec* t, const sigset_t* m) {
    const int ms = t == nullptr ? -1 : static_cast<int>((t->tv_nsec + 999'999) / 1'000'000);
    return epoll_pwait(fd, events, count, ms, m);
  };
  if (mask != nullptr) return wait_with_mask(*mask, deadline_after(timeout), look);
  if (const int n = epoll_wait(fd, events, count, 0); n != 0 || is_nothing(timeout)) return n;
  return await_until(fd, events, count, timeout);
}

}  // namespace strata::preload

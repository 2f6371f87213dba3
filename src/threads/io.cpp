// SPDX-License-Identifier: Apache-2.0
// One thread in a process sleeps in epoll for all that wait on descriptors. It knows a wait by its
// number only: a wait that has ended meanwhile is not found, so nothing dangles.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "strata/blocking.hpp"
#include "strata/detail/worker.hpp"
#include "threads/errno_here.hpp"

namespace strata::detail {
namespace {

struct io_wait {
  int fd;
  std::uint32_t events;
  int error = 0;
  int watched = -1;  // fd, or a duplicate while somebody else waits for fd too
  std::uint64_t number = 0;
  bool watched_once = false;  // guarded by the reactor's mutex
};

class reactor {
 public:
  reactor() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  // Queued already: may be woken before this returns, and by its deadline before this begins.
  void watch(io_wait& w) {
    const std::lock_guard lock(mutex_);
    w.watched_once = true;
    if (epoll_ < 0) return fail(w, EMFILE);
    if (!begin()) return fail(w, EAGAIN);
    w.number = ++numbers_;
    epoll_event e{};
    e.events = w.events | EPOLLONESHOT;
    e.data.u64 = w.number;
    waits_.emplace(w.number, &w);
    w.watched = w.fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, w.watched, &e) == 0) return;
    if (errno == EEXIST) {
      w.watched = fcntl(w.fd, F_DUPFD_CLOEXEC, 3);
      if (w.watched >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, w.watched, &e) == 0) return;
    }
    // EPERM: a regular file, which is always ready.
    fail(w, errno == EPERM ? 0 : errno);
  }

  // Once for each wait, as watch(). Afterwards nobody knows w.
  void forget(io_wait& w) {
    std::unique_lock lock(mutex_);
    // The worker that has given up our stack is about to call watch().
    while (!w.watched_once) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (w.number == 0) return;
    waits_.erase(w.number);
    if (w.watched < 0) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, w.watched, nullptr);
    if (w.watched != w.fd) close(w.watched);
  }

 private:
  // True once it has its thread. Here nothing may be thrown: the caller's stack is given up.
  bool begin() {
    if (running_ || epoll_ < 0) return running_;
    try {
      std::thread([this] { run(); }).detach();
      running_ = true;
    } catch (const std::exception&) {  // refused; there may be room for it later
    }
    return running_;
  }

  void fail(io_wait& w, int error) {
    w.error = error;
    if (w.watched != w.fd && w.watched >= 0) close(w.watched);
    w.watched = -1;
    unpark(&w, 1);
  }

  void run() {
    pthread_setname_np(pthread_self(), "strata-io");
    std::array<epoll_event, 64> happened;
    for (;;) {
      const int n = epoll_wait(epoll_, happened.data(), happened.size(), -1);
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < n; ++i) {
        // A copy: the kernel's structure is packed.
        const std::uint64_t which = happened[static_cast<std::size_t>(i)].data.u64;
        const auto found = waits_.find(which);
        if (found != waits_.end()) unpark(found->second, 1);
      }
    }
  }

  const int epoll_;
  bool running_ = false;
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::uint64_t, io_wait*> waits_;
};

// Never destroyed: its thread may be in it when the process ends.
reactor& the_reactor() {
  static reactor* const r = new reactor;
  return *r;
}

void watch(void* w) { the_reactor().watch(*static_cast<io_wait*>(w)); }

}  // namespace
}  // namespace strata::detail

namespace strata::io {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

int fail(int error) {
  detail::set_errno_here(error);
  return -1;
}

// What holds now; 0: nothing.
int look(int fd, short events) {
  pollfd p{fd, events, 0};
  const int n = ::poll(&p, 1, 0);
  if (n < 0) return -1;
  if ((p.revents & POLLNVAL) != 0) {
    return fail(EBADF);
  }
  return p.revents;
}

// Tries `call` until it need not wait any more. It must not block.
template <class Call>
auto again(int fd, short events, std::chrono::nanoseconds timeout, const Call& call) {
  const std::int64_t deadline = detail::deadline_after(timeout);
  for (;;) {
    const auto result = call();
    if (result >= 0 || !would_block(detail::errno_here())) return result;
    const std::int64_t now = detail::deadline_now();
    if (wait(fd, events,
             deadline == INT64_MAX ? forever : std::chrono::nanoseconds(deadline - now)) < 0)
      return decltype(result)(-1);
  }
}

// For descriptors that may block: only once they are ready.
template <class Call>
auto when_ready(int fd, short events, std::chrono::nanoseconds timeout, const Call& call) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) return again(fd, events, timeout, call);
  if (wait(fd, events, timeout) < 0) return decltype(call())(-1);
  return call();
}

bool is(int fd, mode_t type) {
  struct stat s;
  return ::fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == type;
}

}  // namespace

int wait(int fd, short events, std::chrono::nanoseconds timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout);
  for (;;) {
    if (const int now = look(fd, events); now != 0) return now;
    const std::int64_t left = deadline - detail::deadline_now();
    if (left <= 0) {
      return fail(ETIMEDOUT);
    }
    if (detail::this_worker().owner == nullptr) {
      pollfd p{fd, events, 0};
      const std::int64_t ms =
          deadline == INT64_MAX ? -1 : std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30);
      if (::poll(&p, 1, static_cast<int>(ms)) < 0) return -1;
      continue;
    }
    // The bits of poll and epoll are the same on Linux.
    detail::io_wait w{fd, static_cast<std::uint32_t>(events)};
    detail::park({.what = "file descriptor",
                  .address = &w,
                  .then = &detail::watch,
                  .then_argument = &w,
                  .deadline_ns = deadline});
    {
      const detail::uninterrupted guard;
      detail::the_reactor().forget(w);
    }
    if (w.error != 0) return fail(w.error);
  }
}

ssize_t read(int fd, void* to, std::size_t bytes, std::chrono::nanoseconds timeout) {
  if (is(fd, S_IFSOCK)) return recv(fd, to, bytes, 0, timeout);
  return when_ready(fd, POLLIN, timeout, [&] { return ::read(fd, to, bytes); });
}

ssize_t write(int fd, const void* from, std::size_t bytes, std::chrono::nanoseconds timeout) {
  if (is(fd, S_IFSOCK)) return send(fd, from, bytes, 0, timeout);
  // A pipe that is ready has room for that much; more could block.
  if (is(fd, S_IFIFO)) bytes = std::min<std::size_t>(bytes, PIPE_BUF);
  return when_ready(fd, POLLOUT, timeout, [&] { return ::write(fd, from, bytes); });
}

ssize_t recv(int fd, void* to, std::size_t bytes, int flags, std::chrono::nanoseconds timeout) {
  if ((flags & MSG_DONTWAIT) != 0) return ::recv(fd, to, bytes, flags);
  return again(fd, POLLIN, timeout, [&] { return ::recv(fd, to, bytes, flags | MSG_DONTWAIT); });
}

ssize_t send(int fd, const void* from, std::size_t bytes, int flags,
             std::chrono::nanoseconds timeout) {
  if ((flags & MSG_DONTWAIT) != 0) return ::send(fd, from, bytes, flags);
  return again(fd, POLLOUT, timeout, [&] { return ::send(fd, from, bytes, flags | MSG_DONTWAIT); });
}

int accept(int fd, sockaddr* peer, socklen_t* peer_bytes, std::chrono::nanoseconds timeout) {
  return when_ready(fd, POLLIN, timeout,
                    [&] { return ::accept4(fd, peer, peer_bytes, SOCK_CLOEXEC); });
}

int connect(int fd, const sockaddr* peer, socklen_t peer_bytes, std::chrono::nanoseconds timeout) {
  // Only a socket that does not block can be asked to begin; its flags are put back afterwards.
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -1;
  const bool blocks = (flags & O_NONBLOCK) == 0;
  if (blocks && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -1;
  int result = ::connect(fd, peer, peer_bytes);
  if (result < 0 && detail::errno_here() == EINPROGRESS &&
      (blocks || detail::this_worker().owner != nullptr)) {
    if (wait(fd, POLLOUT, timeout) >= 0) {
      int error = 0;
      socklen_t size = sizeof error;
      result = ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (result == 0 && error != 0) result = fail(error);
    }
  }
  if (blocks) {
    const int kept = detail::errno_here();
    ::fcntl(fd, F_SETFL, flags);
    detail::set_errno_here(kept);
  }
  return result;
}

}  // namespace strata::io

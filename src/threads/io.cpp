// SPDX-License-Identifier: Apache-2.0
// One thread in a process sleeps in epoll for all that wait on descriptors. It knows a wait by its
// number only: a wait that has ended meanwhile is not found, so nothing dangles.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "sched/stall.hpp"
#include "strata/blocking.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/detail/worker.hpp"
#include "threads/errno_here.hpp"
#include "threads/turns.hpp"

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
  // Behind a fork: the one that the parent has.
  explicit reactor(reactor* parents = nullptr)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)), forgotten_(parents) {}

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
  [[maybe_unused]] reactor* const forgotten_;
  bool running_ = false;
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::uint64_t, io_wait*> waits_;
};

// Never destroyed: its thread may be in it when the process ends.
std::atomic<reactor*>& current_reactor() {
  static std::atomic<reactor*> one{new reactor};
  return one;
}
reactor& the_reactor() { return *current_reactor().load(std::memory_order_acquire); }

void watch(void* w) { the_reactor().watch(*static_cast<io_wait*>(w)); }

void forget(io_wait& w) {
  const uninterrupted guard;
  the_reactor().forget(w);
}

// Until the descriptor is ready, or the deadline has come, or w.error says why not. Throws as
// park() does.
void wait_watched(io_wait& w, std::int64_t deadline_ns) {
  try {
    park({.what = wait_for_descriptor,
          .address = &w,
          .then = &watch,
          .then_argument = &w,
          .deadline_ns = deadline_ns});
  } catch (const std::exception&) {
    throw;  // it could not wait, and nobody knows w
  } catch (...) {
    forget(w);  // the thread is left here: see thread_exit.hpp
    throw;
  }
  forget(w);
}

}  // namespace

void forget_descriptor_waits() {
  // The old one's thread is not here, and its epoll is the parent's.
  current_reactor().store(new reactor(&the_reactor()), std::memory_order_release);
  descriptor_turn::forget_all();
}

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

int wait_until(int fd, short events, std::int64_t deadline) {
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
    detail::wait_watched(w, deadline);
    if (w.error != 0) return fail(w.error);
  }
}

// What keeps a thread from waiting is told as the rest is, by errno.
template <class Wait>
auto without_exceptions(const Wait& wait) -> decltype(wait()) {
  try {
    return wait();
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM);
  } catch (const std::system_error&) {
    return fail(EAGAIN);  // there is no thread for deadlines
  }
}

// Makes `call`, which does not block, until it need not wait any more.
template <class Call>
auto again(int fd, short events, std::int64_t deadline, const Call& call) {
  using outcome = decltype(call());
  const outcome at_once = call();
  if (at_once >= 0 || !would_block(detail::errno_here())) return at_once;
  return without_exceptions([&]() -> outcome {
    detail::descriptor_turn mine(fd, events == POLLOUT);
    if (!mine.take(deadline)) return fail(ETIMEDOUT);
    for (;;) {
      if (wait_until(fd, events, deadline) < 0) return -1;
      const outcome later = call();
      if (later >= 0 || !would_block(detail::errno_here())) return later;
    }
  });
}

// Makes `call`, which blocks where the descriptor is not ready, once it is: by who has the turn,
// because of several who see that it is ready all but one could block.
template <class Call>
auto when_ready(int fd, short events, std::int64_t deadline, const Call& call) {
  using outcome = decltype(call());
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) return again(fd, events, deadline, call);
  return without_exceptions([&]() -> outcome {
    detail::descriptor_turn mine(fd, events == POLLOUT);
    if (!mine.take(deadline)) return fail(ETIMEDOUT);
    if (wait_until(fd, events, deadline) < 0) return -1;
    return call();
  });
}

// 0: of no type, or no descriptor.
mode_t type_of(int fd) {
  struct stat s;
  return ::fstat(fd, &s) == 0 ? s.st_mode & S_IFMT : 0;
}

// poll() says so, whatever the disk does.
bool is_always_ready(mode_t type) { return type == S_IFREG || type == S_IFBLK || type == S_IFDIR; }

// Whether a read or write can be asked not to wait, by RWF_NOWAIT; the kernel may refuse that all
// the same. ThreadSanitizer does not see these calls, and would miss what they order.
#if defined(STRATA_TSAN)
constexpr bool kernel_is_asked = false;
#else
constexpr bool kernel_is_asked = true;
#endif
bool is_unknown(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

// A read or write of something else than a socket. `at_once` does not wait, `call` may.
template <class AtOnce, class Call>
ssize_t transfer(int fd, mode_t type, short events, std::int64_t deadline, const AtOnce& at_once,
                 const Call& call) {
  if (is_always_ready(type)) return call();
  // A device may mean something else by that than what it tells poll().
  if (kernel_is_asked && type != S_IFCHR) {
    const ssize_t result = again(fd, events, deadline, at_once);
    if (result >= 0 || !is_unknown(detail::errno_here())) return result;
  }
  return when_ready(fd, events, deadline, call);
}

ssize_t recv_until(int fd, void* to, std::size_t bytes, int flags, std::int64_t deadline) {
  return again(fd, POLLIN, deadline, [&] { return ::recv(fd, to, bytes, flags | MSG_DONTWAIT); });
}

ssize_t send_until(int fd, const void* from, std::size_t bytes, int flags, std::int64_t deadline) {
  return again(fd, POLLOUT, deadline,
               [&] { return ::send(fd, from, bytes, flags | MSG_DONTWAIT); });
}

}  // namespace

int wait(int fd, short events, std::chrono::nanoseconds timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout);
  return without_exceptions([&] { return wait_until(fd, events, deadline); });
}

ssize_t read(int fd, void* to, std::size_t bytes, std::chrono::nanoseconds timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout);
  const mode_t type = type_of(fd);
  if (type == S_IFSOCK) return recv_until(fd, to, bytes, 0, deadline);
  const iovec all{to, bytes};
  return transfer(
      fd, type, POLLIN, deadline, [&] { return ::preadv2(fd, &all, 1, -1, RWF_NOWAIT); },
      [&] { return ::read(fd, to, bytes); });
}

ssize_t write(int fd, const void* from, std::size_t bytes, std::chrono::nanoseconds timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout);
  const mode_t type = type_of(fd);
  if (type == S_IFSOCK) return send_until(fd, from, bytes, 0, deadline);
  const iovec all{const_cast<void*>(from), bytes};
  // A pipe that is ready has room for that much; more could block.
  const std::size_t some = type == S_IFIFO ? std::min<std::size_t>(bytes, PIPE_BUF) : bytes;
  return transfer(
      fd, type, POLLOUT, deadline, [&] { return ::pwritev2(fd, &all, 1, -1, RWF_NOWAIT); },
      [&] { return ::write(fd, from, some); });
}

ssize_t recv(int fd, void* to, std::size_t bytes, int flags, std::chrono::nanoseconds timeout) {
  if ((flags & MSG_DONTWAIT) != 0) return ::recv(fd, to, bytes, flags);
  return recv_until(fd, to, bytes, flags, detail::deadline_after(timeout));
}

ssize_t send(int fd, const void* from, std::size_t bytes, int flags,
             std::chrono::nanoseconds timeout) {
  if ((flags & MSG_DONTWAIT) != 0) return ::send(fd, from, bytes, flags);
  return send_until(fd, from, bytes, flags, detail::deadline_after(timeout));
}

int accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags,
            std::chrono::nanoseconds timeout) {
  return when_ready(fd, POLLIN, detail::deadline_after(timeout),
                    [&] { return ::accept4(fd, peer, peer_bytes, flags); });
}

int accept(int fd, sockaddr* peer, socklen_t* peer_bytes, std::chrono::nanoseconds timeout) {
  return accept4(fd, peer, peer_bytes, 0, timeout);
}

int connect(int fd, const sockaddr* peer, socklen_t peer_bytes, std::chrono::nanoseconds timeout) {
  // Only a socket that does not block can be asked to begin. Its flags are put back afterwards.
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -1;
  const bool blocks = (flags & O_NONBLOCK) == 0;
  if (blocks && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -1;
  int result = ::connect(fd, peer, peer_bytes);
  if (result < 0 && detail::errno_here() == EINPROGRESS) {
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

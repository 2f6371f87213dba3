// SPDX-License-Identifier: Apache-2.0
// Calls that wait for a descriptor, made of those that do not and of waits for it.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <system_error>

#include "strata/blocking.hpp"
#include "strata/detail/worker.hpp"
#include "threads/errno_here.hpp"
#include "threads/reactor.hpp"
#include "threads/turns.hpp"

namespace strata::io {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// What holds now; 0: nothing.
int look(int fd, short events) {
  pollfd p{fd, events, 0};
  const int n = ::poll(&p, 1, 0);
  if (n < 0) return -1;
  if ((p.revents & POLLNVAL) != 0) {
    return detail::fail_with(EBADF);
  }
  return p.revents;
}

int wait_until(int fd, short events, std::int64_t deadline) {
  for (;;) {
    if (const int now = look(fd, events); now != 0) return now;
    const std::int64_t left = deadline - detail::deadline_now();
    if (left <= 0) {
      return detail::fail_with(ETIMEDOUT);
    }
    if (detail::this_worker().owner == nullptr) {
      pollfd p{fd, events, 0};
      const std::int64_t ms =
          deadline == INT64_MAX ? -1 : std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30);
      if (::poll(&p, 1, static_cast<int>(ms)) < 0) return -1;
      continue;
    }
    detail::event_wait w{.fd = fd, .events = events, .deadline_ns = deadline};
    (void)detail::wait_for_events(w);
    if (w.error != 0) return detail::fail_with(w.error);
  }
}

// What keeps a thread from waiting is told as the rest is, by errno.
template <class Wait>
auto without_exceptions(const Wait& wait) -> decltype(wait()) {
  try {
    return wait();
  } catch (const std::bad_alloc&) {
    return detail::fail_with(ENOMEM);
  } catch (const std::system_error&) {
    return detail::fail_with(EAGAIN);  // there is no thread for deadlines
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
    if (mine.take(deadline) != detail::unparked::woken) return detail::fail_with(ETIMEDOUT);
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
    if (mine.take(deadline) != detail::unparked::woken) return detail::fail_with(ETIMEDOUT);
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
      if (result == 0 && error != 0) result = detail::fail_with(error);
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

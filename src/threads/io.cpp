// SPDX-License-Identifier: Apache-2.0
// Calls that wait for a descriptor, made of the system's: of which, for which kind of descriptor.
// How they wait: descriptor_calls.hpp.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

#include "sched/place.hpp"
#include "strata/blocking.hpp"
#include "strata/detail/worker.hpp"
#include "threads/descriptor_calls.hpp"
#include "threads/errno_here.hpp"
#include "threads/terminals.hpp"

namespace strata::io {
namespace {

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
// EPERM: a filter of system calls does not know it, or the transfer is forbidden, as the other call
// will say.
bool is_unknown(int error) { return error == EOPNOTSUPP || error == ENOSYS || error == EPERM; }

// A read or write of something else than a socket or a device. `at_once` does not wait, `call` may.
template <class AtOnce, class Call>
ssize_t transfer(int fd, mode_t type, std::size_t bytes, short events, std::int64_t deadline,
                 const AtOnce& at_once, const Call& call) {
  // A pipe takes and gives nothing whatever it holds.
  if (is_always_ready(type) || (bytes == 0 && type == S_IFIFO)) return call();
  if (kernel_is_asked) {
    const ssize_t result = again(fd, events, deadline, at_once);
    if (result >= 0 || !is_unknown(detail::errno_here())) return result;
  }
  return when_ready(fd, events, deadline, call);
}

// Of a device, by a call that blocks.
ssize_t read_device(int fd, void* to, std::size_t bytes, std::int64_t deadline) {
  const auto call = [&] { return ::read(fd, to, bytes); };
  if (bytes == 0 && ::isatty(fd) == 1) return call();  // which does not wait
  const std::int64_t longest_ns = detail::longest_read_ns(fd);
  if (longest_ns == 0) return call();
  if (longest_ns == detail::parking::never) return when_ready(fd, POLLIN, deadline, call);
  const std::int64_t end = detail::deadline_now() + longest_ns;
  const ssize_t n = when_ready(fd, POLLIN, std::min(deadline, end), call);
  // As the kernel has it: nothing has come in the terminal's own time.
  return n < 0 && end < deadline && detail::errno_here() == ETIMEDOUT ? 0 : n;
}

// Those of memory (null, zero, random) take all at once.
bool takes_all(int fd) {
  constexpr unsigned memory_devices = 1;
  struct stat s;
  return ::fstat(fd, &s) == 0 && S_ISCHR(s.st_mode) && major(s.st_rdev) == memory_devices;
}

// To a device. That it has room does not say how much, and the call waits until all is there: for
// ever where nobody reads from a terminal. So an OS thread makes it, unless the caller cannot wait,
// and for a part, which holds up others and the end of the runtime no longer than it must.
ssize_t write_device(int fd, const void* from, std::size_t bytes, std::int64_t deadline) {
  const auto all = [&] { return ::write(fd, from, bytes); };
  if (bytes == 0 || takes_all(fd)) return all();  // nothing does not wait
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) return again(fd, POLLOUT, deadline, all);
  const auto part = [&] { return ::write(fd, from, std::min<std::size_t>(bytes, PIPE_BUF)); };
  return when_ready(fd, POLLOUT, deadline, [&] {
    const bool can_wait = detail::stack_of_task() != nullptr && !detail::this_worker().is_held;
    return can_wait ? blocking(part) : part();
  });
}

// What waits for nothing: errors and urgent bytes are there or not. Most kinds of sockets answer at
// once, and all with MSG_DONTWAIT.
bool never_waits_to_receive(int flags) {
  return (flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) != 0;
}

// A receiver of the same host that has no room: poll() does not know to whom we send, and says that
// we can.
bool is_local(const void* address, socklen_t bytes) {
  return address != nullptr && bytes >= sizeof(sa_family_t) &&
         static_cast<const sockaddr*>(address)->sa_family == AF_UNIX;
}

ssize_t recv_until(int fd, void* to, std::size_t bytes, int flags, std::int64_t deadline) {
  return again(fd, POLLIN, deadline, [&] { return ::recv(fd, to, bytes, flags | MSG_DONTWAIT); });
}

ssize_t send_until(int fd, const void* from, std::size_t bytes, int flags, std::int64_t deadline) {
  return again(fd, POLLOUT, deadline,
               [&] { return ::send(fd, from, bytes, flags | MSG_DONTWAIT); });
}

ssize_t write_until(int fd, const void* from, std::size_t bytes, std::int64_t deadline) {
  const mode_t type = type_of(fd);
  if (type == S_IFSOCK) return send_until(fd, from, bytes, 0, deadline);
  if (type == S_IFCHR) return write_device(fd, from, bytes, deadline);
  const iovec all{const_cast<void*>(from), bytes};
  // A pipe that is ready has room for that much; more could block.
  const std::size_t some = type == S_IFIFO ? std::min<std::size_t>(bytes, PIPE_BUF) : bytes;
  return transfer(
      fd, type, bytes, POLLOUT, deadline, [&] { return ::pwritev2(fd, &all, 1, -1, RWF_NOWAIT); },
      [&] { return ::write(fd, from, some); });
}

// Calls write_some(what is left, how much) until nothing is. Returns how much was written.
template <class WriteSome>
std::size_t write_all_by(const void* from, std::size_t bytes, const WriteSome& write_some) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = write_some(static_cast<const std::byte*>(from) + done, bytes - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0) {  // a device that takes nothing any more, and does not say why
      detail::set_errno_here(EIO);
      break;
    } else if (detail::errno_here() != EINTR) {
      break;
    }
  }
  return done;
}

// Whether accept() may have to wait. Else it says at once what is wrong; poll() would wait for
// data.
bool may_listen(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return false;
  if (listens != 0) return true;
  // Of others than these (Bluetooth's sockets) the kernel does not tell.
  int domain = AF_UNSPEC;
  size = sizeof domain;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  return domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX;
}

// Only a socket that does not block can be asked to begin to connect. Its flags are put back
// however that is left, with errno as it is.
class not_blocking {
 public:
  explicit not_blocking(int fd) : fd_(fd), flags_(::fcntl(fd, F_GETFL)) {
    if (flags_ < 0) return;
    changed_ = (flags_ & O_NONBLOCK) == 0;
    if (changed_ && ::fcntl(fd, F_SETFL, flags_ | O_NONBLOCK) < 0) {
      changed_ = false;
      flags_ = -1;
    }
  }
  ~not_blocking() {
    if (!changed_) return;
    const int kept = detail::errno_here();
    ::fcntl(fd_, F_SETFL, flags_);
    detail::set_errno_here(kept);
  }
  not_blocking(const not_blocking&) = delete;
  not_blocking& operator=(const not_blocking&) = delete;
  // False: not so, and errno says why.
  explicit operator bool() const noexcept { return flags_ >= 0; }

 private:
  int fd_;
  int flags_;
  bool changed_ = false;
};

}  // namespace

int wait(int fd, short events, time_limit timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout.duration());
  return without_exceptions([&] { return wait_until(fd, events, {deadline}); });
}

ssize_t read(int fd, void* to, std::size_t bytes, time_limit timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout.duration());
  const mode_t type = type_of(fd);
  if (type == S_IFSOCK) {
    // For no bytes recv() waits, and takes a message; read() does neither.
    return bytes != 0 ? recv_until(fd, to, bytes, 0, deadline) : ::read(fd, to, 0);
  }
  if (type == S_IFCHR) return read_device(fd, to, bytes, deadline);
  const iovec all{to, bytes};
  return transfer(
      fd, type, bytes, POLLIN, deadline, [&] { return ::preadv2(fd, &all, 1, -1, RWF_NOWAIT); },
      [&] { return ::read(fd, to, bytes); });
}

ssize_t write(int fd, const void* from, std::size_t bytes, time_limit timeout) {
  return write_until(fd, from, bytes, detail::deadline_after(timeout.duration()));
}

std::size_t write_all(int fd, const void* from, std::size_t bytes, time_limit timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout.duration());
  return write_all_by(from, bytes, [&](const void* rest, std::size_t left) {
    return write_until(fd, rest, left, deadline);
  });
}

ssize_t recv(int fd, void* to, std::size_t bytes, int flags, time_limit timeout) {
  if (never_waits_to_receive(flags)) return ::recv(fd, to, bytes, flags | MSG_DONTWAIT);
  return recv_until(fd, to, bytes, flags, detail::deadline_after(timeout.duration()));
}

ssize_t send(int fd, const void* from, std::size_t bytes, int flags, time_limit timeout) {
  if ((flags & MSG_DONTWAIT) != 0) return ::send(fd, from, bytes, flags);
  return send_until(fd, from, bytes, flags, detail::deadline_after(timeout.duration()));
}

std::size_t send_all(int fd, const void* from, std::size_t bytes, int flags, time_limit timeout) {
  const std::int64_t deadline = detail::deadline_after(timeout.duration());
  return write_all_by(from, bytes, [&](const void* rest, std::size_t left) {
    if ((flags & MSG_DONTWAIT) != 0) return ::send(fd, rest, left, flags);
    return send_until(fd, rest, left, flags, deadline);
  });
}

ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                 socklen_t* peer_bytes, time_limit timeout) {
  const auto call = [&] {
    return ::recvfrom(fd, to, bytes, flags | MSG_DONTWAIT, peer, peer_bytes);
  };
  if (never_waits_to_receive(flags)) return call();
  return again(fd, POLLIN, detail::deadline_after(timeout.duration()), call);
}

ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
               socklen_t peer_bytes, time_limit timeout) {
  const auto call = [&] {
    return ::sendto(fd, from, bytes, flags | MSG_DONTWAIT, peer, peer_bytes);
  };
  if ((flags & MSG_DONTWAIT) != 0 || is_local(peer, peer_bytes)) return call();
  return again(fd, POLLOUT, detail::deadline_after(timeout.duration()), call);
}

ssize_t recvmsg(int fd, msghdr* message, int flags, time_limit timeout) {
  const auto call = [&] { return ::recvmsg(fd, message, flags | MSG_DONTWAIT); };
  if (never_waits_to_receive(flags)) return call();
  return again(fd, POLLIN, detail::deadline_after(timeout.duration()), call);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags, time_limit timeout) {
  const auto call = [&] { return ::sendmsg(fd, message, flags | MSG_DONTWAIT); };
  if ((flags & MSG_DONTWAIT) != 0 || is_local(message->msg_name, message->msg_namelen))
    return call();
  return again(fd, POLLOUT, detail::deadline_after(timeout.duration()), call);
}

int accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags, time_limit timeout) {
  const auto call = [&] { return ::accept4(fd, peer, peer_bytes, flags); };
  if (!may_listen(fd)) return call();
  return when_ready(fd, POLLIN, detail::deadline_after(timeout.duration()), call);
}

int accept(int fd, sockaddr* peer, socklen_t* peer_bytes, time_limit timeout) {
  return accept4(fd, peer, peer_bytes, 0, timeout);
}

int connect(int fd, const sockaddr* peer, socklen_t peer_bytes, time_limit timeout) {
  const not_blocking meanwhile(fd);
  if (!meanwhile) return -1;
  const int result = ::connect(fd, peer, peer_bytes);
  // As of a socket that blocks: what an earlier call has begun, and has not waited for until its
  // end, is waited for again.
  const int in_progress = detail::errno_here();
  if (result == 0 || (in_progress != EINPROGRESS && in_progress != EALREADY)) return result;
  const patience until =
      patience_for(fd, POLLOUT, detail::deadline_after(timeout.duration()), in_progress);
  if (without_exceptions([&] { return wait_until(fd, POLLOUT, until); }) < 0) return -1;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -1;
  if (error != 0) return detail::fail_with(error);
  // What went wrong is told once, perhaps to another who waited for the same: the state tells all.
  sockaddr_storage other;
  size = sizeof other;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0 &&
      detail::errno_here() == ENOTCONN)
    return detail::fail_with(ECONNABORTED);  // as the system's, where it has lost the reason
  return 0;
}

}  // namespace strata::io

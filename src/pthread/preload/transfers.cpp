// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/transfers.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <optional>

#include "pthread/preload/broken_pipes.hpp"
#include "pthread/preload/buffers.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/kinds.hpp"
#include "pthread/preload/sockets.hpp"
#include "pthread/signals.hpp"

extern "C" ssize_t __read_chk(int fd, void* to, std::size_t bytes, std::size_t room);

namespace strata::preload {

namespace posix = detail::posix;

namespace {

// The kernel, or this kind of file, cannot be asked not to wait.
bool cannot_be_asked() noexcept {
  const int error = detail::errno_here();
  return error == EOPNOTSUPP || error == ENOSYS;
}

// Calls `of_socket` if fd is one, and answers what it is otherwise.
template <class OfSocket>
file_kind unless_socket(int fd, const OfSocket& of_socket) {
  if (was_socket(fd) && of_socket()) return file_kind::socket;
  const file_kind kind = look_at(fd);
  return kind != file_kind::socket || of_socket() ? kind : look_at(fd);
}

template <class Plain>
ssize_t read_any(int fd, const iovec* all, std::size_t count, const Plain& plain) {
  buffers to(all, count);
  if (to.left() == 0) return plain(fd);
  const int error_before = detail::errno_here();
  ssize_t n = 0;
  const auto of_socket = [&] {
    n = receive_into(fd, all, count);
    return n >= 0 || detail::errno_here() != ENOTSOCK;
  };
  const wait_for what{fd, POLLIN};
  const file_kind kind = unless_socket(fd, of_socket);
  if (kind == file_kind::socket) return n;
  detail::set_errno_here(error_before);
  switch (kind) {
    case file_kind::ready:
      return plain(fd);
    case file_kind::device:
      return call_when_polled(what, plain);
    default:
      break;
  }
  const auto attempt = [&](int from) {
    return preadv2(from, all, static_cast<int>(count), -1, RWF_NOWAIT);
  };
  n = call_when_ready(what, attempt, plain);
  if (n >= 0 || !cannot_be_asked()) return n;
  detail::set_errno_here(error_before);
  return call_when_polled(what, plain);
}

// ---- write ----

// As the kernel has it, for a descriptor that waits: all of it, whatever it takes. What was written
// before an error, or a handler, is told.
template <class Plain>
ssize_t write_any(int fd, const iovec* all, std::size_t count, const Plain& plain) {
  buffers from(all, count);
  if (from.left() == 0) return plain(fd);
  const int error_before = detail::errno_here();
  ssize_t result = 0;
  const auto of_socket = [&] {
    result = send_parts(fd, all, count);
    return result >= 0 || detail::errno_here() != ENOTSOCK;
  };
  const file_kind kind = unless_socket(fd, of_socket);
  if (kind == file_kind::socket) return result;
  detail::set_errno_here(error_before);
  // A regular file would take a part, at an attempt, and others who append come between.
  if (kind == file_kind::ready) return plain(fd);
  // The kernel says so also after a part.
  bool is_broken = false;
  const auto moved_or = [&](ssize_t n) -> ssize_t {
    if (is_broken) posix::take_broken_pipe();
    if (from.moved() == 0) return n;
    detail::set_errno_here(error_before);
    return static_cast<ssize_t>(from.moved());
  };
  const auto count_in = [&](ssize_t n) -> ssize_t {
    if (n < 0) {
      is_broken = detail::errno_here() == EPIPE;
      return n;
    }
    from.advance(static_cast<std::size_t>(n));
    return from.left() == 0 ? static_cast<ssize_t>(from.moved()) : detail::fail_with(more_to_do);
  };
  bool asks = kind != file_kind::device;
  if (asks) {
    const auto attempt = [&](int to) -> ssize_t {
      const buffers::part rest = from.next();
      const pipe_signal_kept_off here;
      const ssize_t n = pwritev2(to, rest.first, static_cast<int>(rest.count), -1, RWF_NOWAIT);
      if (n < 0 && cannot_be_asked()) asks = false;
      return count_in(n);
    };
    const auto in_kernel = [&](int to) -> ssize_t {
      const buffers::part rest = from.next();
      const pipe_signal_kept_off here;
      return count_in(writev(to, rest.first, static_cast<int>(rest.count)));
    };
    const ssize_t n = call_when_ready({fd, POLLOUT}, attempt, in_kernel);
    if (asks) return moved_or(n);
    detail::set_errno_here(error_before);
  }
  // A handler may write to what is ready, wherever it interrupts.
  if (kind != file_kind::pipe) return call_when_polled({fd, POLLOUT}, plain, true);
  // What is ready has room for that much. The rest goes where it has begun.
  std::optional<descriptor_copy> held;
  if (from.left() > PIPE_BUF) held.emplace(fd, descriptor_copy::use::alone);
  const int pipe = held && held->is_there() ? held->number() : fd;
  for (;;) {
    const auto some = [&](int to) -> ssize_t {
      const buffers::part rest = from.next(PIPE_BUF);
      const pipe_signal_kept_off here;
      return count_in(writev(to, rest.first, static_cast<int>(rest.count)));
    };
    const wait_for what{.fd = pipe, .events = POLLOUT, .after_part = from.moved() != 0};
    const ssize_t n = call_when_polled(what, some);
    if (n >= 0 || detail::errno_here() != more_to_do) return moved_or(n);
  }
}

}  // namespace

ssize_t read_some(int fd, void* to, std::size_t bytes) {
  const auto plain = [=](int from) { return read(from, to, bytes); };
  if (!can_be_suspended()) return plain(fd);
  const iovec all{to, bytes};
  return read_any(fd, &all, 1, plain);
}

ssize_t read_some_checked(int fd, void* to, std::size_t bytes, std::size_t room) {
  // Which ends the process.
  if (bytes > room) return __read_chk(fd, to, bytes, room);
  return read_some(fd, to, bytes);
}

ssize_t read_parts(int fd, const iovec* to, int count) {
  const auto plain = [=](int from) { return readv(from, to, count); };
  if (count <= 0 || count > IOV_MAX || !can_be_suspended()) return plain(fd);
  return read_any(fd, to, static_cast<std::size_t>(count), plain);
}

ssize_t write_all(int fd, const void* from, std::size_t bytes) {
  const auto plain = [=](int to) { return write(to, from, bytes); };
  if (!can_be_suspended()) return plain(fd);
  const iovec all{const_cast<void*>(from), bytes};
  return write_any(fd, &all, 1, plain);
}

ssize_t write_parts(int fd, const iovec* from, int count) {
  const auto plain = [=](int to) { return writev(to, from, count); };
  if (count <= 0 || count > IOV_MAX || !can_be_suspended()) return plain(fd);
  return write_any(fd, from, static_cast<std::size_t>(count), plain);
}

int read_counter(int fd, eventfd_t* value) {
  return read_some(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

int write_counter(int fd, eventfd_t value) {
  return write_all(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

}  // namespace strata::preload

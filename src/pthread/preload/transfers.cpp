// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/transfers.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <optional>

#include "pthread/preload/broken_pipes.hpp"
#include "pthread/preload/buffers.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "pthread/preload/kinds.hpp"
#include "pthread/preload/sockets.hpp"
#include "pthread/signals.hpp"
#include "strata/detail/parking.hpp"
#include "threads/terminals.hpp"

extern "C" ssize_t __read_chk(int fd, void* to, std::size_t bytes, std::size_t room);

namespace strata::preload {

namespace posix = detail::posix;

namespace {

// The kernel, or this kind of file, cannot be asked not to wait. EPERM: a filter of system calls
// does not know how, or the transfer is forbidden, as the other call will say.
bool cannot_be_asked() noexcept {
  const int error = detail::errno_here();
  return error == EOPNOTSUPP || error == ENOSYS || error == EPERM;
}

// Calls `of_socket` if fd is one, and answers what it is otherwise.
template <class OfSocket>
file_kind unless_socket(int fd, const OfSocket& of_socket) {
  if (was_socket(fd) && of_socket()) return file_kind::socket;
  const file_kind kind = look_at(fd);
  return kind != file_kind::socket || of_socket() ? kind : look_at(fd);
}

// poll() does not tell when a read of some terminals ends: a kernel thread waits for those.
template <class Plain>
ssize_t read_device(int fd, const Plain& plain) {
  const wait_for what{fd, POLLIN};
  const std::int64_t longest_ns = detail::longest_read_ns(fd);
  if (longest_ns == detail::parking::never) return call_when_polled(what, plain);
  if (longest_ns == 0 || never_waits(fd) || is_ready(what)) return plain(fd);
  return elsewhere([&] { return plain(fd); });
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
      return read_device(fd, plain);
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

// One call's bytes, of which the kernel may take a part at a time. What was written before an
// error, or a handler, is told.
class pipe_writer {
 public:
  pipe_writer(int fd, const iovec* all, std::size_t count) noexcept : fd_(fd), from_(all, count) {}

  [[nodiscard]] bool has_nothing() const noexcept { return from_.left() == 0; }
  void restore_errno() const noexcept { detail::set_errno_here(error_before_); }

  // By calls that do not wait. Nothing, and nothing is written, where the kernel, or this kind of
  // file, cannot be asked not to.
  std::optional<ssize_t> write_unwaiting() {
    bool asks = true;
    const auto attempt = [&](int to) -> ssize_t {
      const buffers::part rest = from_.next();
      const pipe_signal_kept_off here;
      const ssize_t n = pwritev2(to, rest.first, static_cast<int>(rest.count), -1, RWF_NOWAIT);
      if (n < 0 && cannot_be_asked()) asks = false;
      return count_in(n);
    };
    const auto in_kernel = [&](int to) { return write_now(to, SIZE_MAX); };
    const ssize_t n = call_when_ready({fd_, POLLOUT}, attempt, in_kernel);
    if (asks) return told(n);
    restore_errno();
    return std::nullopt;
  }

  // To a pipe that is ready: so much as that has room for, until all is written.
  ssize_t write_by_room() {
    // The rest goes where it has begun.
    std::optional<descriptor_copy> held;
    if (from_.left() > PIPE_BUF) held.emplace(fd_, descriptor_copy::use::alone);
    const int pipe = held && held->is_there() ? held->number() : fd_;
    for (;;) {
      const auto some = [&](int to) { return write_now(to, PIPE_BUF); };
      const wait_for what{.fd = pipe, .events = POLLOUT, .after_part = from_.moved() != 0};
      const ssize_t n = call_when_polled(what, some);
      if (n >= 0 || detail::errno_here() != more_to_do) return told(n);
    }
  }

 private:
  ssize_t write_now(int to, std::size_t bytes_max) {
    const buffers::part rest = from_.next(bytes_max);
    const pipe_signal_kept_off here;
    return count_in(writev(to, rest.first, static_cast<int>(rest.count)));
  }
  // n: what the kernel has taken.
  ssize_t count_in(ssize_t n) noexcept {
    if (n < 0) {
      is_broken_ = detail::errno_here() == EPIPE;
      return n;
    }
    from_.advance(static_cast<std::size_t>(n));
    return from_.left() == 0 ? static_cast<ssize_t>(from_.moved()) : detail::fail_with(more_to_do);
  }
  // For the caller: what was moved, or n if that is nothing.
  ssize_t told(ssize_t n) {
    if (is_broken_) posix::take_broken_pipe();
    if (from_.moved() == 0) return n;
    restore_errno();
    return static_cast<ssize_t>(from_.moved());
  }

  const int fd_;
  buffers from_;
  const int error_before_ = detail::errno_here();
  bool is_broken_ = false;  // the kernel says so also after a part
};

// As the kernel has it, for a descriptor that waits: all of it, whatever it takes.
template <class Plain>
ssize_t write_any(int fd, const iovec* all, std::size_t count, const Plain& plain) {
  pipe_writer writer(fd, all, count);
  if (writer.has_nothing()) return plain(fd);
  ssize_t result = 0;
  const auto of_socket = [&] {
    result = send_parts(fd, all, count);
    return result >= 0 || detail::errno_here() != ENOTSOCK;
  };
  const file_kind kind = unless_socket(fd, of_socket);
  if (kind == file_kind::socket) return result;
  writer.restore_errno();
  // A regular file would take a part, at an attempt, and others who append come between.
  if (kind == file_kind::ready) return plain(fd);
  if (kind != file_kind::device) {
    if (const auto written = writer.write_unwaiting()) return *written;
  }
  // A handler may write to what is ready, wherever it interrupts.
  if (kind != file_kind::pipe) return call_when_polled({fd, POLLOUT}, plain, true);
  return writer.write_by_room();
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

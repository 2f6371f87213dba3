// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <utility>

namespace strata::launcher {

std::string line_prefixer::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const std::size_t room = line_bytes_max - rest_.size();
    const std::size_t taken = std::min({newline, bytes.size(), room});
    rest_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (newline != taken && taken != room) break;
    if (newline == taken) bytes.remove_prefix(1);
    lines += prefix_ + rest_ + '\n';
    rest_.clear();
  }
  return lines;
}

std::string line_prefixer::finish() {
  if (rest_.empty()) return {};
  return prefix_ + std::exchange(rest_, {}) + '\n';
}

namespace {

constexpr std::size_t moved_after_bytes = 65536;

// What stands for a closed stream is open for reading alone.
bool is_written(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// The other end of a terminal opens as the first end of a new one.
bool is_other_end_of_terminal(int fd) noexcept {
  unsigned number = 0;
  return ::ioctl(fd, TIOCGPTN, &number) == 0;
}

bool is_pipe(int fd) noexcept {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

// The same terminal or pipe once more, so that a write that would have to wait fails. Empty where
// that cannot be had: a terminal may be another user's, a pipe without a reader.
os::descriptor opened_again(int fd) {
  const bool may_be = is_written(fd) && (is_pipe(fd) || ::isatty(fd) != 0);
  if (!may_be || is_other_end_of_terminal(fd)) return os::descriptor();
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  return os::descriptor(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

bool lead_to_one_place(int fd, int other) noexcept {
  struct stat one {
  }, two{};
  return is_written(fd) && is_written(other) && ::fstat(fd, &one) == 0 &&
         ::fstat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

output_queue::output_queue(event_loop& loop, int fd)
    : loop_(loop),
      own_(opened_again(fd)),
      fd_(own_ ? own_.get() : fd),
      // A pipe that can be written to has room for so much, a terminal for something.
      bytes_at_once_(own_ || ::isatty(fd) == 0 ? PIPE_BUF : 1) {}

output_queue::~output_queue() { loop_.forget(fd_); }

void output_queue::add(std::string_view bytes) {
  if (broken_ != 0) return;
  const bool idle = bytes_waiting() == 0;
  bytes_ += bytes;
  if (idle) pump();
}

bool output_queue::write_some() {
  const ssize_t count =
      ::write(fd_, bytes_.data() + written_, std::min(bytes_waiting(), bytes_at_once_));
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  if (count < 0) {
    broken_ = errno;
    bytes_.clear();
    written_ = 0;
    return false;
  }
  written_ += static_cast<std::size_t>(count);
  // Seldom: what is left moves.
  if (written_ == bytes_.size() || written_ >= moved_after_bytes) {
    bytes_.erase(0, written_);
    written_ = 0;
  }
  return true;
}

void output_queue::pump() {
  while (bytes_waiting() != 0) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 1 && write_some()) continue;
    if (bytes_waiting() == 0) break;
    loop_.watch_writes(fd_, [this] { pump(); });
    return;
  }
  loop_.watch_writes(fd_, {});
}

void output_queue::blocking_flush() {
  while (bytes_waiting() != 0) {
    pollfd ready{fd_, POLLOUT, 0};
    ::poll(&ready, 1, -1);
    write_some();
  }
}

}  // namespace strata::launcher

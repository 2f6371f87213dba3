// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
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

bool lead_to_one_place(int fd, int other) noexcept {
  // What stands for a closed stream is open for reading alone.
  const auto is_written = [](int d) {
    const int flags = ::fcntl(d, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
  };
  struct stat one {
  }, two{};
  return is_written(fd) && is_written(other) && ::fstat(fd, &one) == 0 &&
         ::fstat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

void output_queue::add(std::string_view bytes) {
  if (broken_ != 0) return;
  const bool idle = bytes_.empty();
  bytes_ += bytes;
  if (idle) pump();
}

bool output_queue::write_some(std::size_t bytes_max) {
  const ssize_t written = ::write(fd_, bytes_.data(), std::min(bytes_.size(), bytes_max));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  if (written < 0) {
    broken_ = errno;
    bytes_.clear();
    return false;
  }
  bytes_.erase(0, static_cast<std::size_t>(written));
  return true;
}

void output_queue::pump() {
  while (!bytes_.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 1 && write_some(PIPE_BUF)) continue;
    if (bytes_.empty()) break;
    loop_.watch_writes(fd_, [this] { pump(); });
    return;
  }
  loop_.watch_writes(fd_, {});
}

void output_queue::blocking_flush() {
  while (!bytes_.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    ::poll(&ready, 1, -1);
    write_some(PIPE_BUF);
  }
}

}  // namespace strata::launcher

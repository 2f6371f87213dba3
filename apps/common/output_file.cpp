// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strata/error.hpp>
#include <utility>

namespace apps {
namespace {
constexpr std::size_t buffer_bytes = 1 << 16;

// Returns 0 or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}
}  // namespace

output_file::output_file(std::string path) : path_(std::move(path)) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) {
      errno = EISDIR;
      fail("open");
    }
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("open");
    return;
  }
  temporary_ = path_ + ".XXXXXX";
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    fail("create");
  }
  // mkostemp makes the file private; an output gets what the umask allows, as if created by open().
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd_, 0666 & ~mask);
}

output_file::~output_file() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void output_file::fail(const char* doing) {
  throw strata::user_error(path_ + ": cannot " + doing + " the output: " + std::strerror(errno) +
                           "; choose another path");
}

void output_file::write(std::string_view text) {
  pending_.append(text);
  if (pending_.size() < buffer_bytes) return;
  if ((errno = write_all(fd_, pending_)) != 0) fail("write");
  pending_.clear();
}

void output_file::commit() {
  if ((errno = write_all(fd_, pending_)) != 0) fail("write");
  pending_.clear();
  if (temporary_.empty()) return;
  if (::fsync(fd_) != 0) fail("write");
  if (::close(std::exchange(fd_, -1)) != 0) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  temporary_.clear();
}

}  // namespace apps

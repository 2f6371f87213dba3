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
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string link_to(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// A file without a name that can get one later; -1: there is none here.
int open_unnamed(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(link_to(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}
}  // namespace

output_file::output_file(std::string path) : path_(std::move(path)) {
  if (path_.empty()) throw strata::user_error("an output file without a name: choose a path");
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) {
      errno = EISDIR;
      fail("open");
    }
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("open");
    in_place_ = true;
    return;
  }
  fd_ = open_unnamed(folder_of(path_));
  if (fd_ >= 0) return;
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
  if (in_place_) return;
  if (::fsync(fd_) != 0) fail("write");
  if (temporary_.empty()) name_it();
  if (::close(std::exchange(fd_, -1)) != 0) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  temporary_.clear();
}

// A link cannot replace an older file; a rename can.
void output_file::name_it() {
  const std::string unnamed = link_to(fd_);
  for (unsigned i = 0;; ++i) {
    const std::string name = path_ + "." + std::to_string(::getpid()) + "-" + std::to_string(i);
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) fail("name");
  }
}

}  // namespace apps

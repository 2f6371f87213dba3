// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <strata/error.hpp>
#include <utility>

#include "apps/common/output_target.hpp"

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
// npos + 1 is 0.
std::size_t name_in(const std::string& path) { return path.rfind('/') + 1; }
std::string folder_of(const std::string& path) {
  return name_in(path) == 0 ? "." : path.substr(0, name_in(path));
}

std::string link_to(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// A file without a name that can get one later; -1: there is none here.
int open_unnamed(const std::string& folder, mode_t mode) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0 || ::access(link_to(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

// What name_to_be() takes off again.
std::string end_before_commit(unsigned i) {
  return "." + std::to_string(::getpid()) + "-" + std::to_string(i);
}
constexpr std::size_t end_bytes_max = sizeof ".2147483647-4294967295";

// A path that leaves room for such an end, if only by less of a long name: what has to be short is
// the name for the time before, not the one that the user has chosen.
std::string with_room_for_end(const std::string& path) {
  const std::size_t begin = name_in(path);
  const long most = ::pathconf(folder_of(path).c_str(), _PC_NAME_MAX);  // -1: who creates it knows
  if (most < static_cast<long>(end_bytes_max) ||
      path.size() - begin + end_bytes_max <= static_cast<std::size_t>(most))
    return path;
  std::size_t end = begin + (static_cast<std::size_t>(most) - end_bytes_max);
  // Some file systems insist on whole characters.
  while (end > begin && (static_cast<unsigned char>(path[end]) & 0xC0) == 0x80) --end;
  return path.substr(0, end);
}
bool takes_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits != 0;
}
}  // namespace

std::string_view name_to_be(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return name;
  std::string_view end = name.substr(dot + 1);
  if (!takes_number(end) || end.substr(0, 1) != "-") return name;
  end.remove_prefix(1);
  return takes_number(end) && end.empty() ? name.substr(0, dot) : name;
}

// Others may have the name: threads, processes of other hosts, and some that were killed.
template <class Take>
bool output_file::take_name(const Take& take) {
  for (unsigned i = 0;; ++i) {
    std::string name = before_ + end_before_commit(i);
    if (take(name.c_str())) {
      temporary_ = std::move(name);
      return true;
    }
    if (errno != EEXIST) return false;
  }
}

output_file::output_file(std::string path) : path_(std::move(path)) {
  if (path_.empty()) throw strata::user_error("an output file without a name: choose a path");
  output_target to = target_of(path_);
  if (to.descriptor >= 0) {
    write_through(to.descriptor);
    return;
  }
  target_ = std::move(to.path);
  struct stat older {};
  // By the path that was given: the system may refuse to follow links that others have made.
  const bool replaces = ::stat(path_.c_str(), &older) == 0;
  if (!replaces && errno != ENOENT) fail("open");
  if (replaces && !S_ISREG(older.st_mode)) {
    if (S_ISDIR(older.st_mode)) {
      errno = EISDIR;
      fail("open");
    }
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("open");
    in_place_ = true;
    return;
  }
  create(replaces ? older.st_mode & 0707 : 0666);
  if (replaces) take_rights_of(older);
}

// Only root can give files away; a group that is not ours cannot be kept either, and what it was
// allowed is not for ours.
void output_file::take_rights_of(const struct stat& older) noexcept {
  mode_t mode = older.st_mode & 0777;
  if (::fchown(fd_, older.st_uid, older.st_gid) != 0 &&
      ::fchown(fd_, static_cast<uid_t>(-1), older.st_gid) != 0)
    mode &= ~mode_t{S_IRWXG};
  // Where that cannot be done it has fewer.
  (void)::fchmod(fd_, mode);
}

void output_file::write_through(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) fail("open");
  if ((flags & O_ACCMODE) == O_RDONLY) {
    errno = EBADF;
    fail("write");
  }
  fd_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd_ < 0) fail("open");
  in_place_ = true;
}

void output_file::create(mode_t mode) {
  before_ = with_room_for_end(target_);
  if (before_.size() + end_bytes_max > PATH_MAX) {
    errno = ENAMETOOLONG;
    fail("create");
  }
  fd_ = open_unnamed(folder_of(target_), mode);
  if (fd_ >= 0) return;
  // Not mkostemp(), which makes the file private: the umask of the process, which it should have,
  // cannot be read without being changed for a moment, for all threads.
  const bool created = take_name([this, mode](const char* name) {
    fd_ = ::open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
    return fd_ >= 0;
  });
  if (!created) fail("create");
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
  if (pending_.size() >= buffer_bytes) write_pending();
}

void output_file::write_pending() {
  // What was printed before comes before, where both go to the same place.
  if (in_place_) std::fflush(stdout);
  if ((errno = write_all(fd_, pending_)) != 0) fail("write");
  pending_.clear();
}

void output_file::commit() {
  write_pending();
  if (in_place_) return;
  if (::fsync(fd_) != 0) fail("write");
  commit_unflushed();
}

void output_file::commit_unflushed() {
  write_pending();
  if (in_place_) return;
  if (temporary_.empty()) name_it();
  if (::close(std::exchange(fd_, -1)) != 0) fail("write");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename");
  temporary_.clear();
}

// A link cannot replace an older file; a rename can.
void output_file::name_it() {
  const std::string unnamed = link_to(fd_);
  const bool named = take_name([&](const char* name) {
    return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
  });
  if (!named) fail("name");
}

}  // namespace apps

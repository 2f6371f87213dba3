// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pthread/fork.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "pthread/wait.hpp"

extern "C" {
int __open_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
ssize_t __pread_chk(int fd, void* to, std::size_t bytes, off_t from, std::size_t room);
}

namespace strata::preload {
namespace {

void be_point_of_cancellation() { (void)can_be_suspended(); }

// Of which this end is opened when the other one is. Asked for before each such call: it costs less
// than that.
bool waits_for_other_end(int directory, const char* path, int flags) noexcept {
  constexpr int never = O_NONBLOCK | O_PATH | O_DIRECTORY;
  if ((flags & never) != 0 || (flags & O_ACCMODE) == O_RDWR || path == nullptr) return false;
  const detail::posix::kept_errno keep;
  struct stat about {};
  const int follows = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  return fstatat(directory, path, &about, follows) == 0 && S_ISFIFO(about.st_mode) &&
         !detail::posix::is_in_child_of_vfork();
}

template <class Open>
int open_any(int directory, const char* path, int flags, const Open& call) {
  return can_be_suspended() && waits_for_other_end(directory, path, flags) ? elsewhere(call)
                                                                           : call();
}

}  // namespace

int open_file(const char* path, int flags, mode_t mode) {
  return open_any(AT_FDCWD, path, flags, [=] { return open(path, flags, mode); });
}
int open_file_at(int directory, const char* path, int flags, mode_t mode) {
  return open_any(directory, path, flags, [=] { return openat(directory, path, flags, mode); });
}
int create_file(const char* path, mode_t mode) {
  return open_file(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
int open_file_checked(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, [=] { return __open_2(path, flags); });
}
int open_file_at_checked(int directory, const char* path, int flags) {
  return open_any(directory, path, flags, [=] { return __openat_2(directory, path, flags); });
}

ssize_t read_at(int fd, void* to, std::size_t bytes, off_t from) {
  be_point_of_cancellation();
  return pread(fd, to, bytes, from);
}
ssize_t read_at_checked(int fd, void* to, std::size_t bytes, off_t from, std::size_t room) {
  be_point_of_cancellation();
  return __pread_chk(fd, to, bytes, from, room);
}
ssize_t write_at(int fd, const void* from, std::size_t bytes, off_t to) {
  be_point_of_cancellation();
  return pwrite(fd, from, bytes, to);
}

int sync_file(int fd) {
  be_point_of_cancellation();
  return fsync(fd);
}
int sync_data(int fd) {
  be_point_of_cancellation();
  return fdatasync(fd);
}
int sync_memory(void* from, std::size_t bytes, int flags) {
  be_point_of_cancellation();
  return msync(from, bytes, flags);
}

}  // namespace strata::preload

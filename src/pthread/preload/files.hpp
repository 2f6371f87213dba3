// SPDX-License-Identifier: Apache-2.0
// Calls for files, which wait for no other thread and so stay the kernel's, but are points of
// cancellation; and open(), which waits for the other end of a named pipe.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace strata::preload {

// open(), openat(), creat(), and what they are with -D_FORTIFY_SOURCE, where there is no mode. A
// thread that opens a named pipe is suspended.
int open_file(const char* path, int flags, mode_t mode);
int open_file_at(int directory, const char* path, int flags, mode_t mode);
int create_file(const char* path, mode_t mode);
int open_file_checked(const char* path, int flags);
int open_file_at_checked(int directory, const char* path, int flags);

// pread(), pwrite(), fsync(), fdatasync(), msync().
ssize_t read_at(int fd, void* to, std::size_t bytes, off_t from);
ssize_t read_at_checked(int fd, void* to, std::size_t bytes, off_t from, std::size_t room);
ssize_t write_at(int fd, const void* from, std::size_t bytes, off_t to);
int sync_file(int fd);
int sync_data(int fd);
int sync_memory(void* from, std::size_t bytes, int flags);

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// The C library's read() and write(), what checks the room for them, and those for eventfds, in
// which it calls its own.
#pragma once
#include <sys/eventfd.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace strata::preload {

ssize_t read_some(int fd, void* to, std::size_t bytes);
ssize_t read_some_checked(int fd, void* to, std::size_t bytes, std::size_t room);
ssize_t read_parts(int fd, const iovec* to, int count);
ssize_t write_all(int fd, const void* from, std::size_t bytes);
ssize_t write_parts(int fd, const iovec* from, int count);
int read_counter(int fd, eventfd_t* value);
int write_counter(int fd, eventfd_t value);

}  // namespace strata::preload

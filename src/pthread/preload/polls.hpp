// SPDX-License-Identifier: Apache-2.0
// The C library's calls that wait for one of many descriptors.
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <cstddef>
#include <ctime>

namespace strata::preload {

int poll_these(pollfd* fds, nfds_t count, int timeout_ms);
int poll_these_checked(pollfd* fds, nfds_t count, int timeout_ms, std::size_t room);
// With a mask, as the other two: while a kernel thread that has it waits in the thread's place.
int poll_these_with(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask);
int poll_these_with_checked(pollfd* fds, nfds_t count, const timespec* timeout,
                            const sigset_t* mask, std::size_t room);
int select_of(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions, timeval* timeout);
int select_of_with(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions,
                   const timespec* timeout, const sigset_t* mask);
int await_epoll(int fd, epoll_event* events, int count, int timeout_ms);
int await_epoll_with(int fd, epoll_event* events, int count, int timeout_ms, const sigset_t* mask);
int await_epoll_until(int fd, epoll_event* events, int count, const timespec* timeout,
                      const sigset_t* mask);

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// The C library's calls for sockets, and what checks the room for them.
#pragma once
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <ctime>

namespace strata::preload {

ssize_t receive(int fd, void* to, std::size_t bytes, int flags);
ssize_t receive_checked(int fd, void* to, std::size_t bytes, std::size_t room, int flags);
ssize_t receive_from(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                     socklen_t* peer_bytes);
ssize_t receive_from_checked(int fd, void* to, std::size_t bytes, std::size_t room, int flags,
                             sockaddr* peer, socklen_t* peer_bytes);
ssize_t receive_message(int fd, msghdr* message, int flags);
int receive_messages(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);

ssize_t send_bytes(int fd, const void* from, std::size_t bytes, int flags);
ssize_t send_to(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
                socklen_t peer_bytes);
ssize_t send_message(int fd, const msghdr* message, int flags);
int send_messages(int fd, mmsghdr* messages, unsigned count, int flags);

// What read() and write() mean for a socket.
ssize_t receive_into(int fd, const iovec* to, std::size_t count);
ssize_t send_parts(int fd, const iovec* from, std::size_t count);

int accept_one(int fd, sockaddr* peer, socklen_t* peer_bytes);
int accept_one_with(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags);
// setsockopt(), with a note of what recv() has to heed.
int set_option(int fd, int level, int option, const void* value, socklen_t bytes);
// A kernel thread waits: there is no way to ask a socket that waits to begin only.
int connect_to(int fd, const sockaddr* peer, socklen_t peer_bytes);

}  // namespace strata::preload

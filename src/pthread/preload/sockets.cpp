// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/sockets.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "os/clock.hpp"
#include "pthread/preload/broken_pipes.hpp"
#include "pthread/preload/buffers.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/elsewhere.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

extern "C" {
ssize_t __recv_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void* to, std::size_t bytes, std::size_t room, int flags,
                       sockaddr* peer, socklen_t* peer_bytes);
}

namespace strata::preload {
namespace {

bool is_of(int fd, int type) noexcept {
  int its = 0;
  socklen_t size = sizeof its;
  const int error = detail::errno_here();
  const bool is = getsockopt(fd, SOL_SOCKET, SO_TYPE, &its, &size) == 0 && its == type;
  detail::set_errno_here(error);
  return is;
}

// What comes after a part that has been moved is told by the next call, as the kernel has it.
bool has_error(int fd) noexcept {
  pollfd now{fd, 0, 0};
  return poll(&now, 1, 0) == 1 && (now.revents & POLLERR) != 0;
}

// A call for some of the bytes, `once(fd, message)`, until all are moved: what was before an error,
// the end, or a handler, is told.
template <class Once, class InKernel>
ssize_t move_all(const wait_for& what, const msghdr& given, const Once& once,
                 const InKernel& in_kernel, std::size_t enough = SIZE_MAX) {
  const int error_before = detail::errno_here();
  buffers left(given.msg_iov, given.msg_iovlen);
  const auto move = [&](int fd) -> ssize_t {
    if (left.moved() != 0 && has_error(fd)) return 0;
    const bool is_first = left.moved() == 0;
    msghdr message = given;
    const buffers::part part = left.next();
    message.msg_iov = const_cast<iovec*>(part.first);
    message.msg_iovlen = part.count;
    if (!is_first) {
      message.msg_control = nullptr;  // went with the first
      message.msg_controllen = 0;
    }
    const ssize_t n = once(fd, message, is_first);
    if (n <= 0) return n;
    left.advance(static_cast<std::size_t>(n));
    return left.left() == 0 || left.moved() >= enough ? 0 : detail::fail_with(more_to_do);
  };
  const ssize_t end =
      call_when_ready(what, move, [&](int fd) { return left.moved() == 0 ? in_kernel(fd) : 0; });
  if (left.moved() == 0) return end;
  detail::set_errno_here(error_before);
  return static_cast<ssize_t>(left.moved());
}

// ---- receive ----

constexpr int never_wait_in = MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE;

bool waits_for_all(int fd, int flags) noexcept {
  return (flags & MSG_WAITALL) != 0 && is_of(fd, SOCK_STREAM);
}

// Since a socket has been told to wait for more than a byte (SO_RCVLOWAT) each is asked. Relaxed:
// who tells and who receives have heard of each other.
constinit std::atomic<bool> some_wait_for_more{false};

// How many bytes a call with that much room waits for.
std::size_t least_of(int fd, std::size_t room) noexcept {
  if (!some_wait_for_more.load(std::memory_order_relaxed) || !is_of(fd, SOCK_STREAM)) return 1;
  int least = 1;
  socklen_t size = sizeof least;
  const int error = detail::errno_here();
  if (getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &size) != 0 || least < 1) least = 1;
  detail::set_errno_here(error);
  return std::min(static_cast<std::size_t>(least), room);
}

bool is_local(int fd) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// The kernel tells when there is as much, or nothing will be any more. After the time for it, or a
// handler, what there is by then counts.
template <class Plain>
ssize_t receive_enough(const wait_for& what, msghdr& message, int flags, const Plain& plain) {
  const auto now = [&](int from) { return recvmsg(from, &message, flags | MSG_DONTWAIT); };
  const auto attempt = [&](int from) -> ssize_t {
    return is_ready({from, POLLIN}) ? now(from) : detail::fail_with(EAGAIN);
  };
  const ssize_t n = call_when_ready(what, attempt, plain);
  const int error = detail::errno_here();
  if (n >= 0 || (error != EAGAIN && error != EINTR)) return n;
  const ssize_t some = now(what.fd);
  return some > 0 || error == EAGAIN ? some : detail::fail_with(error);
}

template <class Plain>
ssize_t receive_with(int fd, msghdr& message, int flags, const Plain& plain) {
  const wait_for what{fd, POLLIN, SO_RCVTIMEO};
  const bool all = waits_for_all(fd, flags);
  std::size_t enough = SIZE_MAX;
  if (!all) {
    std::size_t room = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) room += message.msg_iov[i].iov_len;
    enough = least_of(fd, room);
    if (enough <= 1)
      return call_when_ready(
          what, [&](int from) { return recvmsg(from, &message, flags | MSG_DONTWAIT); }, plain);
    // Local ones are ready with less, and what has come can be taken as it comes.
    if (!is_local(fd)) return receive_enough(what, message, flags, plain);
  }
  // The kernel alone can wait for bytes and leave them there.
  if ((flags & MSG_PEEK) != 0) return elsewhere([&] { return plain(fd); });
  const msghdr given = message;
  const auto once = [&](int from, msghdr& part, bool is_first) {
    // What comes along with the bytes ends the call.
    if (!is_first && message.msg_controllen != 0) return ssize_t{0};
    const ssize_t n = recvmsg(from, &part, flags | MSG_DONTWAIT);
    if (n < 0 || !is_first) return n;
    message = part;
    message.msg_iov = given.msg_iov;
    message.msg_iovlen = given.msg_iovlen;
    return n;
  };
  return move_all(what, given, once, plain, enough);
}

// ---- send ----

// What a call for sending has answered.
template <class Answer>
Answer sent(Answer answer, int flags) {
  if (answer < 0 && (flags & MSG_NOSIGNAL) == 0 && detail::errno_here() == EPIPE)
    detail::posix::take_broken_pipe();
  return answer;
}

template <class Plain>
ssize_t send_with(int fd, const msghdr& message, int flags, const Plain& plain) {
  // Which begins a connection, and waits for it.
  if ((flags & MSG_FASTOPEN) != 0 && !never_waits(fd)) return elsewhere([&] { return plain(fd); });
  // Who is gone after a part is told by the next call alone, also by a signal.
  const auto once = [&](int to, const msghdr& part, bool is_first) {
    return sendmsg(to, &part, flags | MSG_DONTWAIT | (is_first ? 0 : MSG_NOSIGNAL));
  };
  if (message.msg_iovlen != 0) {
    bool has_bytes = false;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i)
      has_bytes = has_bytes || message.msg_iov[i].iov_len != 0;
    if (has_bytes) return move_all({fd, POLLOUT, SO_SNDTIMEO}, message, once, plain);
  }
  return call_when_ready(
      {fd, POLLOUT, SO_SNDTIMEO}, [&](int to) { return once(to, message, true); }, plain);
}

template <class Plain>
int accept_with(int fd, const Plain& plain) {
  if (!can_be_suspended()) return plain(fd);
  int listens = 0;
  socklen_t size = sizeof listens;
  // Otherwise it says so at once.
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    return plain(fd);
  return call_when_polled({fd, POLLIN, SO_RCVTIMEO}, plain);
}

}  // namespace

ssize_t receive_from(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                     socklen_t* peer_bytes) {
  const auto plain = [=](int from) { return recvfrom(from, to, bytes, flags, peer, peer_bytes); };
  if (!can_be_suspended() || (flags & never_wait_in) != 0) return plain(fd);
  if ((flags & MSG_WAITALL) == 0 && least_of(fd, bytes) <= 1)
    return call_when_ready(
        {fd, POLLIN, SO_RCVTIMEO},
        [=](int from) { return recvfrom(from, to, bytes, flags | MSG_DONTWAIT, peer, peer_bytes); },
        plain);
  iovec all{to, bytes};
  msghdr message{};
  message.msg_iov = &all;
  message.msg_iovlen = 1;
  message.msg_name = peer;
  message.msg_namelen = peer != nullptr && peer_bytes != nullptr ? *peer_bytes : 0;
  const ssize_t n =
      receive_with(fd, message, flags, [&](int from) { return recvmsg(from, &message, flags); });
  if (n >= 0 && peer != nullptr && peer_bytes != nullptr) *peer_bytes = message.msg_namelen;
  return n;
}

ssize_t receive_from_checked(int fd, void* to, std::size_t bytes, std::size_t room, int flags,
                             sockaddr* peer, socklen_t* peer_bytes) {
  // Which ends the process.
  if (bytes > room) return __recvfrom_chk(fd, to, bytes, room, flags, peer, peer_bytes);
  return receive_from(fd, to, bytes, flags, peer, peer_bytes);
}

ssize_t receive(int fd, void* to, std::size_t bytes, int flags) {
  return receive_from(fd, to, bytes, flags, nullptr, nullptr);
}

ssize_t receive_checked(int fd, void* to, std::size_t bytes, std::size_t room, int flags) {
  if (bytes > room) return __recv_chk(fd, to, bytes, room, flags);
  return receive(fd, to, bytes, flags);
}

ssize_t receive_message(int fd, msghdr* message, int flags) {
  const auto plain = [=](int from) { return recvmsg(from, message, flags); };
  if (!can_be_suspended() || (flags & never_wait_in) != 0) return plain(fd);
  return receive_with(fd, *message, flags, plain);
}

int receive_messages(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  const auto plain = [=](int from) { return recvmmsg(from, messages, count, flags, timeout); };
  if (!can_be_suspended() || (flags & never_wait_in) != 0 || count == 0) return plain(fd);
  const bool has_time = timeout != nullptr;
  if (has_time &&
      (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1'000'000'000))
    return plain(fd);
  timespec end{};
  if (has_time) end = detail::posix::from_now(*timeout);
  const detail::posix::deadline until{CLOCK_MONOTONIC, has_time ? &end : nullptr};
  const int error_before = detail::errno_here();
  unsigned done = 0;
  // As the kernel has it, the time is looked at when something has come.
  const auto attempt = [&](int from) -> int {
    if (done != 0 && has_error(from)) return 0;
    const int n = recvmmsg(from, messages + done, count - done,
                           (flags & ~MSG_WAITFORONE) | MSG_DONTWAIT, nullptr);
    if (n <= 0) return n;
    done += static_cast<unsigned>(n);
    const bool is_enough = done == count || (flags & MSG_WAITFORONE) != 0 || until.has_passed();
    return is_enough ? 0 : detail::fail_with(more_to_do);
  };
  const int answer = call_when_ready({fd, POLLIN, SO_RCVTIMEO}, attempt, [&](int from) {
    return done != 0 ? 0 : recvmmsg(from, messages, count, flags, timeout);
  });
  if (done == 0) return answer;
  if (has_time) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *timeout = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
    if (timeout->tv_nsec < 0) *timeout = {timeout->tv_sec - 1, timeout->tv_nsec + 1'000'000'000};
    if (timeout->tv_sec < 0) *timeout = {0, 0};
  }
  detail::set_errno_here(error_before);
  return static_cast<int>(done);
}

ssize_t send_to(int fd, const void* from, std::size_t bytes, int wanted, const sockaddr* peer,
                socklen_t peer_bytes) {
  const int flags = flags_of_sender(wanted);
  const auto plain = [=](int to) { return sendto(to, from, bytes, flags, peer, peer_bytes); };
  if (!can_be_suspended() || (flags & MSG_DONTWAIT) != 0) return sent(plain(fd), wanted);
  iovec all{const_cast<void*>(from), bytes};
  msghdr message{};
  message.msg_iov = &all;
  message.msg_iovlen = 1;
  message.msg_name = const_cast<sockaddr*>(peer);
  message.msg_namelen = peer_bytes;
  return sent(send_with(fd, message, flags, plain), wanted);
}

ssize_t send_bytes(int fd, const void* from, std::size_t bytes, int flags) {
  return send_to(fd, from, bytes, flags, nullptr, 0);
}

ssize_t send_message(int fd, const msghdr* message, int wanted) {
  const int flags = flags_of_sender(wanted);
  const auto plain = [=](int to) { return sendmsg(to, message, flags); };
  if (!can_be_suspended() || (flags & MSG_DONTWAIT) != 0) return sent(plain(fd), wanted);
  return sent(send_with(fd, *message, flags, plain), wanted);
}

// One after the other: a part of the last is not an answer here.
int send_messages(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (!can_be_suspended() || (flags & MSG_DONTWAIT) != 0 || never_waits(fd))
    return sent(sendmmsg(fd, messages, count, flags_of_sender(flags)), flags);
  unsigned done = 0;
  while (done < count) {
    const ssize_t n = send_message(fd, &messages[done].msg_hdr, flags);
    if (n < 0) break;
    messages[done++].msg_len = static_cast<unsigned>(n);
  }
  return done != 0 || count == 0 ? static_cast<int>(done) : -1;
}

ssize_t receive_into(int fd, const iovec* to, std::size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(to);
  message.msg_iovlen = count;
  return receive_message(fd, &message, 0);
}

ssize_t send_parts(int fd, const iovec* from, std::size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from);
  message.msg_iovlen = count;
  return send_message(fd, &message, 0);
}

int accept_one(int fd, sockaddr* peer, socklen_t* peer_bytes) {
  return accept_with(fd, [=](int from) { return accept(from, peer, peer_bytes); });
}

int accept_one_with(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) {
  return accept_with(fd, [=](int from) { return accept4(from, peer, peer_bytes, flags); });
}

int set_option(int fd, int level, int option, const void* value, socklen_t bytes) {
  const int answer = setsockopt(fd, level, option, value, bytes);
  if (answer == 0 && level == SOL_SOCKET && option == SO_RCVLOWAT)
    some_wait_for_more.store(true, std::memory_order_relaxed);
  return answer;
}

int connect_to(int fd, const sockaddr* peer, socklen_t peer_bytes) {
  if (!can_be_suspended() || never_waits(fd) ||
      (!is_of(fd, SOCK_STREAM) && !is_of(fd, SOCK_SEQPACKET)))
    return connect(fd, peer, peer_bytes);
  return elsewhere([=] { return connect(fd, peer, peer_bytes); });
}

}  // namespace strata::preload

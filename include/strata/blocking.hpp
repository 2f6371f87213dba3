// SPDX-License-Identifier: Apache-2.0
// Waiting on the world: what would stop a whole worker suspends one thread instead. (For
// threads of strata/thread.hpp, fork-join tasks and everything else that owns a stack.)
//
//   const ssize_t n = strata::io::read(socket, buffer, size);       // other threads run meanwhile
//   strata::blocking([&] { system("sort big > sorted"); });         // any other call that blocks
#pragma once
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "strata/detail/deadline.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/parking.hpp"

namespace strata {

namespace detail {

struct stack;

struct blocking_call {
  void (*run)(blocking_call&);
  blocking_call* next = nullptr;
  int error = 0;  // errno, going there and coming back
  std::uint32_t done = 0;
  bool takes_no_signals = false;  // all are blocked meanwhile; otherwise `mask`
  // By the caller, when its wait for the end of the call is ended by a signal of pthread.h, or, if
  // `interruptible`, by an interruption: true if it wants to be asked again soon.
  bool (*disturbed)(blocking_call&, unparked why) = nullptr;
  bool interruptible = false;
  sigset_t mask{};                // what the caller's worker has blocked
  const stack* caller = nullptr;  // for people: it stays where it is meanwhile, with its name
};
// Runs it on an OS thread that does nothing else, and suspends the caller until then.
void call_blocking(blocking_call& call);

template <class F>
struct blocking_function : blocking_call {
  explicit blocking_function(F& f) : blocking_call{&call}, function(std::addressof(f)) {}
  static void call(blocking_call& c) {
    auto& self = static_cast<blocking_function&>(c);
    self.out.capture(*self.function);
  }
  F* function;
  outcome<std::invoke_result_t<F&>> out;
};

}  // namespace detail

/// Calls f, which may block in the kernel, on an OS thread kept for such calls; the calling thread
/// is suspended and its worker goes on. Returns what f returns, rethrows its exception; errno goes
/// there and comes back. f must not use fork-join, threads or fibers of the runtime, and sees other
/// thread_local variables than the caller; it has blocked the signals that the caller's worker has,
/// and so have programs that it starts. The runtime does not end before f has returned. Outside a
/// runtime f is simply called. 5 to 12 us when a thread is at hand; those threads end when they are
/// idle for a second. There are at most 256 at once; further calls wait for one.
template <class F>
auto blocking(F&& f) -> std::invoke_result_t<F&> {
  detail::blocking_function<std::remove_reference_t<F>> call(f);
  detail::call_blocking(call);
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    call.out.take();
  } else {
    return call.out.take();
  }
}

/// File descriptors. Each function is its namesake of POSIX: the same arguments, results and errno,
/// whether the descriptor has O_NONBLOCK or not; where that would block, it suspends the calling
/// thread instead. Outside a runtime it blocks. A deadline that passes gives ETIMEDOUT; where there
/// is no thread or memory for a wait, the result is EAGAIN or ENOMEM. In a fiber they throw
/// misuse_error if they would have to wait. Cost of a wait: 3 to 9 us.
///
/// Who waits without a timeout does not keep its runtime from ending, and goes no further then.
///
/// Without a timeout a wait lasts as long as the socket says (SO_RCVTIMEO, SO_SNDTIMEO), if it has
/// been told: then the result is EAGAIN, that of connect() EINPROGRESS, as the system's; another
/// connect() waits on for the same connection, and is late with EALREADY. wait() heeds no such
/// time, as poll() does not.
///
/// Where it differs from a call that blocks: write() and send() return as soon as they have written
/// something, which may be less than all (write_all() and send_all() go on), and those that receive
/// heed no MSG_WAITALL and may return with less than SO_RCVLOWAT says. What is written to a
/// terminal or another device without O_NONBLOCK an OS thread writes, as in strata::blocking(), 4
/// KiB at once: a timeout is for when that begins. Regular files never suspend (they are always
/// ready): use strata::blocking() for slow ones. For a call that is not here: wait(), then the call
/// with MSG_DONTWAIT, or of a descriptor with O_NONBLOCK.
///
/// As with the system's calls, closing a descriptor does not end the waits for it: they may never
/// end, or be for what has its number next. shutdown(fd, SHUT_RDWR) ends those for a connection or
/// a socket that listens (accept() then fails with EINVAL); for all others choose a timeout. Close
/// the descriptor when nobody uses it any more.
///
/// Any number of threads may wait for one descriptor, or for copies of it made by dup(): those that
/// want the same of it are served in order of arrival, and each message or connection wakes one.
/// Each wait for it beside another, by wait() or for something else, has a copy of it open
/// meanwhile, and is told EMFILE where the process may have no more.
/// But a descriptor without O_NONBLOCK can be read, or accepted from, by others as well: by plain
/// read() or accept(), or by another process. Where one of those is quicker, after the kernel has
/// said that there is something, then accept() (and read() of a terminal or another device, and
/// read() and write() of pipes on Linux before 6.4) stops its worker until there is something
/// again. Give it O_NONBLOCK if it is shared so.
namespace io {

/// How long a call waits at most: any duration. One that is not above 0 is over at once, one of
/// more than 285 years is none.
class time_limit {
 public:
  template <class Rep, class Period>
  constexpr time_limit(  // NOLINT(google-explicit-constructor): is one
      const std::chrono::duration<Rep, Period>& time)
      : ns_(detail::nanoseconds_in(time)) {}
  /// As a number of nanoseconds; their largest where there is no limit.
  [[nodiscard]] constexpr std::chrono::nanoseconds duration() const noexcept { return ns_; }

 private:
  std::chrono::nanoseconds ns_;
};

/// No timeout.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// Waits until one of `events` (POLLIN, POLLOUT) holds for fd; returns those that do, as poll()
/// would (also POLLERR, POLLHUP), or -1 with errno: EBADF where fd is no descriptor.
int wait(int fd, short events, time_limit timeout = forever);

/// As the system's of the same name, with two differences: they suspend where those block, and
/// after `timeout` return -1 with ETIMEDOUT. The descriptor's flags stay as they are in all of
/// these but connect().
ssize_t read(int fd, void* to, std::size_t bytes, time_limit timeout = forever);
ssize_t write(int fd, const void* from, std::size_t bytes, time_limit timeout = forever);
ssize_t recv(int fd, void* to, std::size_t bytes, int flags, time_limit timeout = forever);
ssize_t send(int fd, const void* from, std::size_t bytes, int flags, time_limit timeout = forever);
ssize_t recvfrom(int fd, void* to, std::size_t bytes, int flags, sockaddr* peer,
                 socklen_t* peer_bytes, time_limit timeout = forever);
ssize_t recvmsg(int fd, msghdr* message, int flags, time_limit timeout = forever);
/// Of these two, one that names a local address (AF_UNIX) does not wait: where its receiver has no
/// room for more it gives EAGAIN at once, since nothing tells when there is. Connect the socket,
/// and name none, to wait.
ssize_t sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* peer,
               socklen_t peer_bytes, time_limit timeout = forever);
ssize_t sendmsg(int fd, const msghdr* message, int flags, time_limit timeout = forever);

/// As write() and send(), again and again until all has been written; `timeout` is for all of it,
/// and EINTR does not end it. Returns how many bytes were written: `bytes`, or less, and errno says
/// why.
[[nodiscard]] std::size_t write_all(int fd, const void* from, std::size_t bytes,
                                    time_limit timeout = forever);
[[nodiscard]] std::size_t send_all(int fd, const void* from, std::size_t bytes, int flags,
                                   time_limit timeout = forever);

/// As with POSIX, what is accepted is inherited by programs that the process becomes, and blocks.
int accept(int fd, sockaddr* peer, socklen_t* peer_bytes, time_limit timeout = forever);
/// accept() with flags for what is accepted: SOCK_CLOEXEC, SOCK_NONBLOCK.
int accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags, time_limit timeout = forever);
/// The socket has O_NONBLOCK while this is in progress: nobody else should use it, or change its
/// flags, until then. Afterwards its flags are as before, however it ends. After ETIMEDOUT, and
/// misuse_error in a fiber, the attempt goes on in the kernel: close the socket. A local one
/// (AF_UNIX) whose listener has no room for more gives EAGAIN at once.
int connect(int fd, const sockaddr* peer, socklen_t peer_bytes, time_limit timeout = forever);

}  // namespace io
}  // namespace strata

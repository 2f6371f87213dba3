// SPDX-License-Identifier: Apache-2.0
// Waiting on the world: what would stop a whole worker suspends one thread instead. (Issue L8; for
// threads of strata/thread.hpp, fork-join tasks and everything else that owns a stack.)
//
//   const ssize_t n = strata::io::read(socket, buffer, size);       // other threads run meanwhile
//   strata::blocking([&] { system("sort big > sorted"); });         // any other call that blocks
#pragma once
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "strata/detail/deadline.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/parking.hpp"

namespace strata {

namespace detail {

struct blocking_call {
  void (*run)(blocking_call&);
  blocking_call* next = nullptr;
  int error = 0;  // errno, going there and coming back
  std::uint32_t done = 0;
};
// Runs it on an OS thread that does nothing else, and suspends the caller until then.
void call_blocking(blocking_call& call);

template <class F>
struct blocking_function : blocking_call {
  explicit blocking_function(F& f) : blocking_call{&call}, function(&f) {}
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
/// thread_local variables than the caller. Outside a runtime f is simply called. About 5 us when a
/// thread is at hand; those threads end when they are idle for a second. There are at most 256 at
/// once; further calls wait for one.
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

/// File descriptors. Each function is its namesake of POSIX: the same arguments, results and errno;
/// where that would block, it suspends the calling thread instead. They never change the
/// descriptor's flags. Outside a runtime they block. A deadline that passes gives ETIMEDOUT.
/// Regular files never suspend (they are always ready): use strata::blocking() for slow ones. Cost
/// of a wait: some 3 us.
namespace io {

inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// Waits until one of `events` (POLLIN, POLLOUT) holds for fd; returns those that do, as poll()
/// would (also POLLERR, POLLHUP), or -1 with errno.
int wait(int fd, short events, std::chrono::nanoseconds timeout = forever);

ssize_t read(int fd, void* to, std::size_t bytes, std::chrono::nanoseconds timeout = forever);
ssize_t write(int fd, const void* from, std::size_t bytes,
              std::chrono::nanoseconds timeout = forever);
ssize_t recv(int fd, void* to, std::size_t bytes, int flags,
             std::chrono::nanoseconds timeout = forever);
ssize_t send(int fd, const void* from, std::size_t bytes, int flags,
             std::chrono::nanoseconds timeout = forever);
int accept(int fd, sockaddr* peer, socklen_t* peer_bytes,
           std::chrono::nanoseconds timeout = forever);
int connect(int fd, const sockaddr* peer, socklen_t peer_bytes,
            std::chrono::nanoseconds timeout = forever);

}  // namespace io
}  // namespace strata

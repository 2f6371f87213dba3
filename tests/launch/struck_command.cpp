// SPDX-License-Identifier: Apache-2.0
// The command strata, which is sent a signal at one of its own calls: STRIKE=K:SIGNAL, at the K-th
// by which it reads, writes, waits, speaks to its guard or its nodes, or opens and closes lines to
// them. Before that it writes "struck". What it has forked, its guard among them, counts nothing.
// Declared as they are and not as inline functions, which some compilers make of them:
#undef _FORTIFY_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "tests/common/hidden_call.hpp"

namespace {

using strata::test::hidden_call;

// One thread: that of the launcher.
pid_t counting = 0;
int calls_left = 0;
int number = 0;

[[gnu::constructor]] void prepare() {
  const char* const text = std::getenv("STRIKE");
  if (text == nullptr || std::sscanf(text, "%d:%d", &calls_left, &number) != 2) return;
  counting = ::getpid();
}

template <class F, class... Arguments>
auto step(hidden_call<F>& real, Arguments... arguments) {
  if (calls_left > 0 && ::getpid() == counting && --calls_left == 0) {
    (void)::syscall(SYS_write, STDOUT_FILENO, "struck\n", std::size_t{7});
    (void)::syscall(SYS_kill, counting, number);
  }
  return real.get()(arguments...);
}

constinit hidden_call<ssize_t(int, void*, std::size_t)> real_read("read");
constinit hidden_call<ssize_t(int, const void*, std::size_t)> real_write("write");
constinit hidden_call<ssize_t(int, const msghdr*, int)> real_sendmsg("sendmsg");
constinit hidden_call<ssize_t(int, msghdr*, int)> real_recvmsg("recvmsg");
constinit hidden_call<int(int, epoll_event*, int, int)> real_epoll_wait("epoll_wait");
constinit hidden_call<int(int, int, int, epoll_event*)> real_epoll_ctl("epoll_ctl");
constinit hidden_call<int(int, int, int, int*)> real_socketpair("socketpair");
constinit hidden_call<int(int*, int)> real_pipe2("pipe2");
constinit hidden_call<int(int)> real_close("close");
constinit hidden_call<pid_t(pid_t, int*, int)> real_waitpid("waitpid");
constinit hidden_call<int(pid_t, int)> real_kill("kill");

}  // namespace

extern "C" {

ssize_t read(int fd, void* bytes, std::size_t size) { return step(real_read, fd, bytes, size); }
ssize_t write(int fd, const void* bytes, std::size_t size) {
  return step(real_write, fd, bytes, size);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return step(real_sendmsg, fd, message, flags);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return step(real_recvmsg, fd, message, flags);
}
int epoll_wait(int fd, epoll_event* events, int size, int timeout_ms) {
  return step(real_epoll_wait, fd, events, size, timeout_ms);
}
int epoll_ctl(int fd, int what, int about, epoll_event* event) noexcept {
  return step(real_epoll_ctl, fd, what, about, event);
}
int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  return step(real_socketpair, domain, type, protocol, ends);
}
int pipe2(int* ends, int flags) noexcept { return step(real_pipe2, ends, flags); }
int close(int fd) { return step(real_close, fd); }
pid_t waitpid(pid_t process, int* status, int flags) {
  return step(real_waitpid, process, status, flags);
}
int kill(pid_t process, int what) noexcept { return step(real_kill, process, what); }
}

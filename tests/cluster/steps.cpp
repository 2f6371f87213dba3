// SPDX-License-Identifier: Apache-2.0
// Without <sys/socket.h>, whose declarations some compilers turn into inline functions.
#include "steps.hpp"

#include <signal.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/common/hidden_call.hpp"
#include "tests/common/require.hpp"

struct msghdr;

namespace killed {
namespace {

constinit std::atomic<int> calls_left{0}, tokens_left{0};  // 0 or less: nobody counts

[[noreturn]] void die() {
  char line[32];
  const char* const node = std::getenv("STRATA_NODE");
  (void)std::snprintf(line, sizeof line, "node %s dies\n", node != nullptr ? node : "");
  (void)!::write(1, line, std::strlen(line));
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

// Several threads may take steps at once; one of them takes the last.
void count(std::atomic<int>& left) {
  if (left.load(std::memory_order_relaxed) > 0 && left.fetch_sub(1, std::memory_order_relaxed) == 1)
    die();
}

using strata::test::hidden_call;
using send_function = ssize_t(int, const void*, std::size_t, int);
using recv_function = ssize_t(int, void*, std::size_t, int);
using sendmsg_function = ssize_t(int, const msghdr*, int);
using syscall_function = long(long, ...);
constinit hidden_call<send_function> real_send("send");
constinit hidden_call<recv_function> real_recv("recv");
constinit hidden_call<sendmsg_function> real_sendmsg("sendmsg");
constinit hidden_call<syscall_function> real_syscall("syscall");

}  // namespace

void die_at_call(unsigned k) { calls_left.store(static_cast<int>(k)); }
void die_at_token(unsigned k) { tokens_left.store(static_cast<int>(k)); }

void die_after_us(unsigned us) {
  sigevent how{};
  how.sigev_notify = SIGEV_SIGNAL;
  how.sigev_signo = SIGKILL;
  timer_t timer;
  strata::test::require(::timer_create(CLOCK_MONOTONIC, &how, &timer) == 0, "a timer");
  itimerspec when{};
  when.it_value.tv_sec = us / 1'000'000;
  when.it_value.tv_nsec = static_cast<long>(us % 1'000'000) * 1000 + 1;  // 0 would be never
  strata::test::require(::timer_settime(timer, 0, &when, nullptr) == 0, "a time");
}

void count_token() { count(tokens_left); }

}  // namespace killed

extern "C" {

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  killed::count(killed::calls_left);
  return killed::real_send.get()(fd, bytes, size, flags);
}

ssize_t recv(int fd, void* bytes, std::size_t size, int flags) {
  killed::count(killed::calls_left);
  return killed::real_recv.get()(fd, bytes, size, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  killed::count(killed::calls_left);
  return killed::real_sendmsg.get()(fd, message, flags);
}

// The futexes. As the C library does, it passes on six words, however many there are; the others
// lie where a sanitizer may have set up a fence.
__attribute__((no_sanitize("address", "thread", "undefined"))) long syscall(long number,
                                                                            ...) noexcept {
  killed::count(killed::calls_left);
  long words[6];
  std::va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  return killed::real_syscall.get()(number, words[0], words[1], words[2], words[3], words[4],
                                    words[5]);
}
}

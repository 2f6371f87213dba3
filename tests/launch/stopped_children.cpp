// SPDX-License-Identifier: Apache-2.0
// The command strata, whose children are stopped before they are what they are to be: STOP=guard,
// before that has a group of its own; STOP=nodes, each when it takes signals again and is about to
// become its program; STOP=nodes:SIGNAL, the launcher being sent that signal just before. Or which
// is stopped itself, STOP=launcher, when one of its nodes runs and the next one does not.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "tests/common/hidden_call.hpp"

namespace {

using strata::test::hidden_call;

pid_t launcher = 0;
bool stops_guard = false, stops_nodes = false, stops_launcher = false;
int number = 0;

[[gnu::constructor]] void prepare() {
  const char* const text = std::getenv("STOP");
  if (text == nullptr) return;
  launcher = ::getpid();
  stops_guard = std::strcmp(text, "guard") == 0;
  stops_launcher = std::strcmp(text, "launcher") == 0;
  stops_nodes = std::strncmp(text, "nodes", 5) == 0;
  if (stops_nodes && text[5] == ':') number = std::atoi(text + 6);
}

constinit hidden_call<pid_t()> real_getpgrp("getpgrp");
constinit hidden_call<int(const char*, char* const*, char* const*)> real_execve("execve");
constinit hidden_call<ssize_t(int, void*, std::size_t, int)> real_recv("recv");

}  // namespace

extern "C" {

// The guard begins with it.
pid_t getpgrp() noexcept {
  if (stops_guard && ::getppid() == launcher) ::kill(::getpid(), SIGTSTP);
  return real_getpgrp.get()();
}

int execve(const char* path, char* const* argv, char* const* envp) noexcept {
  if (stops_nodes && ::getpid() != launcher) {
    if (number != 0) ::kill(launcher, number);
    ::kill(::getpid(), SIGSTOP);
  }
  return real_execve.get()(path, argv, envp);
}

// The first thing that the launcher receives is the guard's word that a node runs.
ssize_t recv(int fd, void* bytes, std::size_t size, int flags) {
  const ssize_t received = real_recv.get()(fd, bytes, size, flags);
  if (stops_launcher && ::getpid() == launcher) {
    stops_launcher = false;
    ::kill(launcher, SIGSTOP);
  }
  return received;
}
}

// SPDX-License-Identifier: Apache-2.0
// Starting other programs, which inherit what the calling thread has, and not what its worker has.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "pthread/affinity.hpp"
#include "pthread/argument_list.hpp"
#include "pthread/own_state.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/blocking.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

template <class F, class... A>
auto with_own_state(F function, A... arguments) {
  const own_state mine;
  return function(arguments...);
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

#if defined(STRATA_CARRIES_PROGRAM_LOCALS)
// What takes as many arguments as it is given cannot be forwarded to: under the command these have
// the C library's names themselves.
[[gnu::visibility("default")]] int strata_execl(const char* path, const char* first,
                                                ...) __asm__("execl");
[[gnu::visibility("default")]] int strata_execlp(const char* file, const char* first,
                                                 ...) __asm__("execlp");
[[gnu::visibility("default")]] int strata_execle(const char* path, const char* first,
                                                 ...) __asm__("execle");
#endif

int strata_posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const arguments[],
                       char* const environment[]) {
  const uninterrupted guard;
  return with_own_state(&posix_spawn, process, path, actions, attributes, arguments, environment);
}

int strata_posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const arguments[],
                        char* const environment[]) {
  const uninterrupted guard;
  return with_own_state(&posix_spawnp, process, file, actions, attributes, arguments, environment);
}

int strata_system(const char* command) {
  if (command == nullptr || !stops_others()) {
    const uninterrupted guard;
    return with_own_state(&system, command);
  }
  act_on_cancellation();  // a point of it: before anything is started, and when all is over
  const sigset_t mask = mask_of_caller();
  record* const caller = self_if_any();
  const int status = strata::blocking([&] {
    const own_affinity affinity(caller);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    const int its_status = system(command);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);  // leaves errno as it is
    return its_status;
  });
  const kept_errno keep;
  act_on_cancellation();
  return status;
}

FILE* strata_popen(const char* command, const char* mode) {
  const uninterrupted guard;
  return with_own_state(&popen, command, mode);
}

int strata_pclose(FILE* stream) {
  const record* const caller = self_if_any();
  // Who has locked the stream has done so on this OS thread.
  const bool holds_streams = caller != nullptr && caller->streams_held != 0;
  if (holds_streams || !stops_others()) return pclose(stream);
  return strata::blocking([&] { return pclose(stream); });
}

int strata_execv(const char* path, char* const arguments[]) {
  return with_own_state(&execv, path, arguments);
}

int strata_execve(const char* path, char* const arguments[], char* const environment[]) {
  return with_own_state(&execve, path, arguments, environment);
}

int strata_execvp(const char* file, char* const arguments[]) {
  return with_own_state(&execvp, file, arguments);
}

int strata_execvpe(const char* file, char* const arguments[], char* const environment[]) {
  return with_own_state(&execvpe, file, arguments, environment);
}

int strata_fexecve(int fd, char* const arguments[], char* const environment[]) {
  return with_own_state(&fexecve, fd, arguments, environment);
}

int strata_execl(const char* path, const char* first, ...) {
  std::va_list more;
  va_start(more, first);
  const int error =
      with_argument_list(first, more, [path](char* const* all) { return strata_execv(path, all); });
  va_end(more);
  return error;
}

int strata_execlp(const char* file, const char* first, ...) {
  std::va_list more;
  va_start(more, first);
  const int error = with_argument_list(
      first, more, [file](char* const* all) { return strata_execvp(file, all); });
  va_end(more);
  return error;
}

// The environment follows.
int strata_execle(const char* path, const char* first, ...) {
  std::va_list more;
  va_start(more, first);
  const int error = with_argument_list(first, more, [path, &more](char* const* all) {
    return strata_execve(path, all, va_arg(more, char**));
  });
  va_end(more);
  return error;
}
}

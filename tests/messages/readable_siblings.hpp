// SPDX-License-Identifier: Apache-2.0
// Whether the kernel lets a process read another one's memory when both have the same parent, as
// the nodes of a job on one host have: what tests may ask of messages depends on it.
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strata::test {

inline bool siblings_can_be_read() {
  int here = 42;  // at the same address in both
  const pid_t read = ::fork();
  if (read < 0) return false;  // kill() would take that for everybody
  if (read == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const pid_t reads = ::fork();
  if (reads == 0) {
    int seen = 0;
    const iovec into{&seen, sizeof(seen)}, from{&here, sizeof(here)};
    const bool whole = ::process_vm_readv(read, &into, 1, &from, 1, 0) == sizeof(seen);
    ::_exit(whole && seen == here ? 0 : 1);
  }
  int status = -1;
  const bool is_known = reads > 0 && ::waitpid(reads, &status, 0) == reads;
  ::kill(read, SIGKILL);
  ::waitpid(read, nullptr, 0);
  return is_known && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace strata::test

// SPDX-License-Identifier: Apache-2.0
// Calls that wait in the kernel, as the C library has them. A thread that is not the only one is
// suspended meanwhile, and a kernel thread that takes no signals waits in its place.
#pragma once
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace strata::preload {

// wait(), waitpid(), wait3(), wait4(), waitid().
pid_t await_any(int* status);
pid_t await_child(pid_t which, int* status, int options);
pid_t await_any_and_usage(int* status, int options, rusage* usage);
pid_t await_child_and_usage(pid_t which, int* status, int options, rusage* usage);
int await_child_by_id(idtype_t kind, id_t which, siginfo_t* found, int options);
// flock().
int lock_file(int fd, int operation);

}  // namespace strata::preload

// SPDX-License-Identifier: Apache-2.0
// What Linux keeps for kernel threads and programs ask it for by their numbers, not by a pthread_t:
// affinity, and the name. A thread of ours gets what pthread_setaffinity_np() and
// pthread_setname_np() say, so that nobody changes the worker, which others run on, too. The child
// of a vfork() gets the kernel's.
#pragma once
#include <sched.h>
#include <sys/types.h>

#include <cstddef>

namespace strata::preload {

// sched_setaffinity(), sched_getaffinity().
int set_affinity(pid_t thread, std::size_t bytes, const cpu_set_t* cpus);
int get_affinity(pid_t thread, std::size_t bytes, cpu_set_t* cpus);
// prctl(). PR_SET_NAME and PR_GET_NAME are the thread's; all else is passed on.
int control_process(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

}  // namespace strata::preload

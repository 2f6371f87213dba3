// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/kernel_thread.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "pthread/affinity.hpp"
#include "pthread/fork.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/pthread.h"
#include "threads/errno_here.hpp"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

bool is_called_by_ours() noexcept {
  const detail::worker& w = detail::this_worker();
  return w.owner != nullptr && static_cast<const detail::place&>(w).current != nullptr &&
         !posix::is_in_child_of_vfork();
}

// The caller, or whatever it has been told by gettid() of the threads of this process: a worker.
bool concerns_ours(pid_t thread) noexcept {
  if (thread < 0 || !is_called_by_ours()) return false;
  const posix::kept_errno keep;
  return thread == 0 || syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

// If it is the caller: what it has asked us for before is over, in this process.
void leave_affinity_to_kernel(pid_t thread) noexcept {
  if (thread != 0 && thread != gettid()) return;
  posix::record* const mine = posix::self_if_any();
  if (mine == nullptr) return;
  posix::is_in_child_of_vfork() ? posix::ignore_affinity_here(*mine)
                                : posix::forget_affinity(*mine);
}

int answer(int error) noexcept {
  if (error == 0) return 0;
  detail::set_errno_here(error);
  return -1;
}

}  // namespace

int set_affinity(pid_t thread, std::size_t bytes, const cpu_set_t* cpus) {
  if (cpus == nullptr || !concerns_ours(thread)) {
    const int status = sched_setaffinity(thread, bytes, cpus);
    if (status == 0) leave_affinity_to_kernel(thread);
    return status;
  }
  return answer(strata_pthread_setaffinity_np(strata_pthread_self(), bytes, cpus));
}

int get_affinity(pid_t thread, std::size_t bytes, cpu_set_t* cpus) {
  if (cpus == nullptr || !concerns_ours(thread)) return sched_getaffinity(thread, bytes, cpus);
  return answer(strata_pthread_getaffinity_np(strata_pthread_self(), bytes, cpus));
}

int control_process(int option, unsigned long a, unsigned long b, unsigned long c,
                    unsigned long d) {
  if ((option != PR_SET_NAME && option != PR_GET_NAME) || a == 0 || !is_called_by_ours())
    return prctl(option, a, b, c, d);
  constexpr std::size_t bytes = posix::record::name_bytes_max;
  if (option == PR_GET_NAME)
    return answer(
        strata_pthread_getname_np(strata_pthread_self(), reinterpret_cast<char*>(a), bytes));
  std::array<char, bytes> name{};  // cut off as the kernel does
  std::strncpy(name.data(), reinterpret_cast<const char*>(a), bytes - 1);
  return answer(strata_pthread_setname_np(strata_pthread_self(), name.data()));
}

}  // namespace strata::preload

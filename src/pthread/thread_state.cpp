// SPDX-License-Identifier: Apache-2.0
// What can be asked and told about a thread: name, stack, processors, scheduling.
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/pages.hpp"
#include "pthread/affinity.hpp"
#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "pthread/scheduling.hpp"
#include "sched/place.hpp"

namespace strata::detail::posix {
namespace {

std::atomic<int> concurrency{0};

constexpr const char* process_name_file = "/proc/self/comm";

stack* own_stack() noexcept {
  const worker& w = this_worker();
  return w.owner != nullptr ? static_cast<const place&>(w).current : nullptr;
}

bool may_be_real_time(int priority) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur >= static_cast<rlim_t>(priority))
    return true;
  // As the kernel decides for the others: by the capability, not by who the user is.
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  return syscall(SYS_capget, &header, data.data()) == 0 &&
         (data[0].effective & (1U << CAP_SYS_NICE)) != 0;
}

// Which is the name of the kernel thread that the process began with. Where that is refused it
// keeps the one it has.
void name_process(const char* name) noexcept {
  const int before = errno;
  if (const int fd = open(process_name_file, O_WRONLY | O_CLOEXEC); fd >= 0) {
    // An empty one is its end: of nothing written the kernel takes no notice.
    (void)!write(fd, name, std::max<std::size_t>(std::strlen(name), 1));
    close(fd);
  }
  errno = before;
}

// Into name_bytes_max bytes.
int read_process_name(char* name) noexcept {
  const int before = errno;
  const int fd = open(process_name_file, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? read(fd, name, record::name_bytes_max) : -1;
  if (fd >= 0) close(fd);
  errno = before;
  if (got <= 0) return pthread_getname_np(pthread_self(), name, record::name_bytes_max);
  name[got - 1] = '\0';  // where the line ends
  return 0;
}

// For those functions that a thread from outside leaves to the C library.
pthread_t os_thread_of(const record& r) noexcept { return r.os_thread; }

}  // namespace

int check_scheduling(int policy, int priority) noexcept {
  if (policy != SCHED_OTHER && policy != SCHED_FIFO && policy != SCHED_RR &&
      policy != SCHED_BATCH && policy != SCHED_IDLE)
    return EINVAL;
  if (priority < sched_get_priority_min(policy) || priority > sched_get_priority_max(policy))
    return EINVAL;
  const bool real_time = policy == SCHED_FIFO || policy == SCHED_RR;
  return !real_time || may_be_real_time(priority) ? 0 : EPERM;
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_setname_np(pthread_t thread, const char* name) {
  if (!is_ours(thread)) return pthread_setname_np(thread, name);
  if (std::strlen(name) >= record::name_bytes_max) return ERANGE;
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  // main(), for example, whose stack has nobody's title. A thread of strata/thread.hpp has its own.
  stack* const here = own_stack();
  if (here != nullptr && here->thread == static_cast<thread_block*>(r))
    here->title = r->title.data();
  {
    const holding lock(r->more.lock);
    r->more.name = name;  // too short to need memory
    set_title(*r, name);
  }
  if (r->is_main) name_process(name);
  return r->is_os_thread ? pthread_setname_np(os_thread_of(*r), name) : 0;
}

int strata_pthread_getname_np(pthread_t thread, char* name, size_t bytes) {
  if (!is_ours(thread)) return pthread_getname_np(thread, name, bytes);
  if (bytes < record::name_bytes_max) return ERANGE;
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r->is_os_thread) return pthread_getname_np(os_thread_of(*r), name, bytes);
  bool has_its_own = false;
  {
    const holding lock(r->more.lock);
    std::memcpy(name, r->more.name.c_str(), r->more.name.size() + 1);
    // Its own may be empty, as the title is then.
    has_its_own = *name != '\0' || r->title[0] == '\0';
  }
  // Until it has one of its own it shares the process's, as kernel threads do.
  return has_its_own ? 0 : read_process_name(name);
}

int strata_pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) {
  if (!is_ours(thread)) return pthread_getattr_np(thread, attributes);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r->is_os_thread) return pthread_getattr_np(os_thread_of(*r), attributes);
  if (const int error = pthread_attr_init(attributes)) return error;
  const bool detached = (r->life.load(std::memory_order_relaxed) & record::detached) != 0;
  pthread_attr_setdetachstate(attributes,
                              detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
  pthread_attr_setguardsize(attributes, r->guard_bytes);
  pthread_attr_setinheritsched(
      attributes, r->inherits_scheduling ? PTHREAD_INHERIT_SCHED : PTHREAD_EXPLICIT_SCHED);
  if (r->given_stack != nullptr) {
    pthread_attr_setstack(attributes, r->given_stack, r->asked_bytes);
  } else if (const stack* const on = r->runs_on.load(std::memory_order_acquire); on != nullptr) {
    // No more pages than was asked for: what is below is none of the program's business. From the
    // beginning of one, as the C library has it: programs protect some of theirs (Java).
    const stack& s = *on;
    std::size_t bytes = r->asked_bytes;
    if (bytes == 0) pthread_attr_getstacksize(attributes, &bytes);
    const std::size_t below =
        (s.bytes - std::min(bytes, s.bytes)) / strata::os::page_bytes() * strata::os::page_bytes();
    pthread_attr_setstack(attributes, static_cast<std::byte*>(s.bottom) + below, s.bytes - below);
  } else if (r->asked_bytes != 0) {
    pthread_attr_setstacksize(attributes, r->asked_bytes);
  }
  const sched_param parameters{r->priority.load(std::memory_order_relaxed)};
  pthread_attr_setschedpolicy(attributes, r->policy.load(std::memory_order_relaxed));
  pthread_attr_setschedparam(attributes, &parameters);
  return 0;
}

int strata_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* cpus) {
  if (!is_ours(thread)) return pthread_setaffinity_np(thread, bytes, cpus);
  record* const r = find_record(thread);
  return r != nullptr ? set_affinity(*r, bytes, cpus) : ESRCH;
}

int strata_pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* cpus) {
  if (!is_ours(thread)) return pthread_getaffinity_np(thread, bytes, cpus);
  if (find_record(thread) == nullptr) return ESRCH;
  const int before = errno;
  if (read_affinity_of_process(bytes, cpus) == 0) return 0;
  return std::exchange(errno, before);
}

int strata_pthread_setschedparam(pthread_t thread, int policy, const sched_param* parameters) {
  if (!is_ours(thread)) return pthread_setschedparam(thread, policy, parameters);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (const int error = check_scheduling(policy, parameters->sched_priority)) return error;
  if (r->is_os_thread) {
    if (const int error = pthread_setschedparam(os_thread_of(*r), policy, parameters)) return error;
  }
  r->policy.store(policy, std::memory_order_relaxed);
  r->priority.store(parameters->sched_priority, std::memory_order_relaxed);
  return 0;
}

int strata_pthread_getschedparam(pthread_t thread, int* policy, sched_param* parameters) {
  if (!is_ours(thread)) return pthread_getschedparam(thread, policy, parameters);
  const record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r->is_os_thread) return pthread_getschedparam(os_thread_of(*r), policy, parameters);
  *policy = r->policy.load(std::memory_order_relaxed);
  parameters->sched_priority = r->priority.load(std::memory_order_relaxed);
  return 0;
}

int strata_pthread_setschedprio(pthread_t thread, int priority) {
  if (!is_ours(thread)) return pthread_setschedprio(thread, priority);
  const record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  const sched_param parameters{priority};
  return strata_pthread_setschedparam(thread, r->policy.load(std::memory_order_relaxed),
                                      &parameters);
}

int strata_pthread_setconcurrency(int level) {
  if (level < 0) return EINVAL;
  concurrency.store(level, std::memory_order_relaxed);
  return 0;
}

int strata_pthread_getconcurrency() { return concurrency.load(std::memory_order_relaxed); }

int strata_pthread_getcpuclockid(pthread_t thread, clockid_t* clock) {
  if (!is_ours(thread)) return pthread_getcpuclockid(thread, clock);
  const record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r->is_os_thread) return pthread_getcpuclockid(os_thread_of(*r), clock);
  if (r != self_if_any()) return ENOENT;
  *clock = CLOCK_THREAD_CPUTIME_ID;  // of the worker, whoever else it runs
  return 0;
}
}

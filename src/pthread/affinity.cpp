// SPDX-License-Identifier: Apache-2.0
#include "pthread/affinity.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "os/unbound.hpp"
#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

static_assert(std::tuple_size_v<os::cpu_bytes> == affinity_bytes_max);

const cpu_set_t* as_set(const processors& wanted) noexcept {
  return reinterpret_cast<const cpu_set_t*>(wanted.data());
}

bool read_affinity(pid_t thread, os::cpu_bytes& to) noexcept {
  return sched_getaffinity(thread, to.size(), os::as_cpu_set(to)) == 0;
}

// The kernel takes a set if it can use one of it, and so it can those that the process has.
bool has_some_of_process(const processors& wanted) noexcept {
  os::cpu_bytes now{};
  if (read_affinity_of_process(now.size(), os::as_cpu_set(now)) != 0) return false;
  for (std::size_t i = 0; i < std::min(wanted.size(), now.size()); ++i) {
    if ((wanted[i] & now[i]) != std::byte{}) return true;
  }
  return false;
}

int try_affinity(const processors& wanted) noexcept {
  const uninterrupted guard;
  os::cpu_bytes before{};
  if (!read_affinity(0, before)) return errno;
  if (sched_setaffinity(0, wanted.size(), as_set(wanted)) != 0) return errno;
  sched_setaffinity(0, before.size(), os::as_cpu_set(before));
  return 0;
}

// What it has asked for, or else what threads of the process have. The kernel has the last word:
// they may have gone meanwhile.
bool bind(record* r) noexcept {
  if (r != nullptr && r->has_affinity.load(std::memory_order_relaxed)) {
    const holding lock(r->more.lock);
    const processors* const wanted = r->affinity.get();
    return wanted != nullptr && sched_setaffinity(0, wanted->size(), as_set(*wanted)) == 0;
  }
  const os::cpu_bytes* const all = os::cpus_before_binding();
  return all != nullptr && sched_setaffinity(0, all->size(), os::as_cpu_set(*all)) == 0;
}

bool has_to_be_bound(const record* r) noexcept {
  if (r != nullptr && r->affinity_ignored_in.load(std::memory_order_relaxed) == getpid())
    return false;
  return os::cpus_before_binding() != nullptr ||
         (r != nullptr && r->has_affinity.load(std::memory_order_relaxed));
}

void put(record& r, std::shared_ptr<const processors> wanted) noexcept {
  const holding lock(r.more.lock);
  r.has_affinity.store(wanted != nullptr, std::memory_order_relaxed);
  r.affinity_ignored_in.store(0, std::memory_order_relaxed);
  r.affinity.swap(wanted);
}

}  // namespace

int set_affinity(record& r, std::size_t bytes, const cpu_set_t* cpus) {
  const int errno_before = errno;
  try {
    const auto* const first = reinterpret_cast<const std::byte*>(cpus);
    auto wanted =
        std::make_shared<const processors>(first, first + std::min(bytes, affinity_bytes_max));
    const int error = has_some_of_process(*wanted) ? 0 : try_affinity(*wanted);
    if (error == 0) put(r, std::move(wanted));
    errno = errno_before;
    return error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void inherit_affinity(record& r, record& from) noexcept {
  if (!from.has_affinity.load(std::memory_order_relaxed)) return;
  std::shared_ptr<const processors> asked;
  {
    const holding lock(from.more.lock);
    asked = from.affinity;
  }
  put(r, std::move(asked));
}

void forget_affinity(record& r) noexcept {
  if (r.has_affinity.load(std::memory_order_relaxed)) put(r, nullptr);
}

void ignore_affinity_here(record& r) noexcept {
  r.affinity_ignored_in.store(getpid(), std::memory_order_relaxed);
}

void bind_for_good(record& r) noexcept {
  const int errno_before = errno;
  if (has_to_be_bound(&r) && bind(&r)) forget_affinity(r);
  os::forget_binding();
  errno = errno_before;
}

// Under the command the process's first OS thread is a worker, which has another affinity while it
// starts a program; what the caller's own had before it was bound is what that had, too. Relaxed:
// who is asked is known before there are threads.
int read_affinity_of_process(std::size_t bytes, cpu_set_t* to) noexcept {
  if (main_record.load(std::memory_order_relaxed) == nullptr)
    return sched_getaffinity(getpid(), bytes, to);
  const uninterrupted guard;
  const os::unbound here;
  return sched_getaffinity(0, bytes, to);
}

own_affinity::own_affinity(record* r) noexcept {
  if (!has_to_be_bound(r)) return;
  const int errno_before = errno;
  changed_ = read_affinity(0, before_) && bind(r);
  errno = errno_before;
}

own_affinity::~own_affinity() {
  if (!changed_) return;
  const int errno_before = errno;
  sched_setaffinity(0, before_.size(), os::as_cpu_set(before_));
  errno = errno_before;
}

}  // namespace strata::detail::posix

// SPDX-License-Identifier: Apache-2.0
#include "os/unbound.hpp"

#include <cerrno>

namespace strata::os {
namespace {

thread_local constinit cpu_bytes before{};
thread_local constinit bool is_kept = false;

}  // namespace

void keep_cpus_before_binding() noexcept {
  if (!is_kept) is_kept = sched_getaffinity(0, before.size(), as_cpu_set(before)) == 0;
}

const cpu_bytes* cpus_before_binding() noexcept { return is_kept ? &before : nullptr; }

void forget_binding() noexcept { is_kept = false; }

unbound::unbound() noexcept {
  const cpu_bytes* const wanted = cpus_before_binding();
  if (wanted == nullptr) return;
  const int error = errno;
  changed_ = sched_getaffinity(0, bound_.size(), as_cpu_set(bound_)) == 0 &&
             sched_setaffinity(0, wanted->size(), as_cpu_set(*wanted)) == 0;
  errno = error;
}

unbound::~unbound() {
  if (!changed_) return;
  const int error = errno;
  sched_setaffinity(0, bound_.size(), as_cpu_set(bound_));
  errno = error;
}

}  // namespace strata::os

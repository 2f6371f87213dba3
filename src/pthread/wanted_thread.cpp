// SPDX-License-Identifier: Apache-2.0
#include "pthread/wanted_thread.hpp"

#include <bit>
#include <cerrno>
#include <cstdint>

#include "pthread/default_attributes.hpp"
#include "pthread/scheduling.hpp"
#include "sched/scheduler.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

int read_attributes(const pthread_attr_t* a, wanted_thread& r) {
  int state = 0;
  if (const int error = pthread_attr_getdetachstate(a, &state)) return error;
  r.detached = state == PTHREAD_CREATE_DETACHED;
  int inheritance = PTHREAD_INHERIT_SCHED;
  pthread_attr_getinheritsched(a, &inheritance);
  if (inheritance == PTHREAD_EXPLICIT_SCHED) {
    sched_param parameters{};
    pthread_attr_getschedpolicy(a, &r.policy);
    pthread_attr_getschedparam(a, &parameters);
    r.inherits = false;
    r.priority = parameters.sched_priority;
    if (const int error = check_scheduling(r.policy, r.priority)) return error;
  }
  sigset_t mask;
  if (pthread_attr_getsigmask_np(a, &mask) == 0) r.mask = mask;
  std::size_t bytes = 0;
  void* lowest = nullptr;
  if (const int error = pthread_attr_getstack(a, &lowest, &bytes)) return error;
  // Where none was given the C library counts down from null; where no size was it counts none.
  const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
  if (const int error = pthread_attr_getstacksize(a, &bytes)) return error;
  if (top != 0) {
    r.given_stack = reinterpret_cast<std::byte*>(top) - bytes;
    r.asked_bytes = bytes;
    r.guard_bytes = 0;
    return 0;
  }
  std::size_t guard = 0;
  pthread_attr_getguardsize(a, &guard);
  r.guard_bytes = (guard + usual_guard_bytes - 1) & ~(usual_guard_bytes - 1);
  // What the C library has begun with is in the size of the process's runtime already.
  r.accepts_more = bytes == default_stack_bytes();
  if (r.accepts_more && !defaults_have_changed()) return 0;
  constexpr std::size_t largest = std::size_t{1} << 30;
  if (bytes > largest) return EAGAIN;
  r.asked_bytes = bytes;
  return 0;
}

}  // namespace

int read_wanted(const pthread_attr_t* a, wanted_thread& r) {
  if (a != nullptr) return read_attributes(a, r);
  if (!defaults_have_changed()) return 0;
  pthread_attr_t defaults;
  if (const int error = strata_pthread_getattr_default_np(&defaults)) return error;
  const int error = read_attributes(&defaults, r);
  pthread_attr_destroy(&defaults);
  return error;
}

std::size_t bytes_of_stack(const wanted_thread& wanted, const scheduler& home) noexcept {
  if (wanted.asked_bytes == 0 || wanted.given_stack != nullptr) return 0;
  if (wanted.accepts_more && wanted.asked_bytes <= home.stacks.stack_bytes()) return 0;
  // Ours has its header in there, and calls into the runtime below the program's own.
  constexpr std::size_t for_us = 16 * 1024;
  return std::bit_ceil(wanted.asked_bytes + for_us);
}

}  // namespace strata::detail::posix

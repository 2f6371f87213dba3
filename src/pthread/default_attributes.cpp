// SPDX-License-Identifier: Apache-2.0
#include "pthread/default_attributes.hpp"

#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "pthread/holding.hpp"
#include "strata/pthread.h"
#include "sync/spin_lock.hpp"

namespace strata::detail::posix {
namespace {

struct kept_attributes {
  int detach_state = PTHREAD_CREATE_JOINABLE;
  int inheritance = PTHREAD_INHERIT_SCHED;
  int policy = SCHED_OTHER;
  sched_param parameters{};
  std::optional<sigset_t> mask;
};
constinit spin_lock defaults_lock;
constinit kept_attributes kept_defaults;
// Release: with what is kept. Partner: defaults_have_changed().
constinit std::atomic<bool> has_changed{false};

bool has_place_of_its_own(const pthread_attr_t* a) noexcept {
  void* lowest = nullptr;
  std::size_t bytes = 0;
  // Of one that has none the C library says that its top is 0.
  return pthread_attr_getstack(a, &lowest, &bytes) == 0 &&
         reinterpret_cast<std::uintptr_t>(lowest) + bytes != 0;
}

int read_defaults(const pthread_attr_t* a, kept_attributes& k) noexcept {
  pthread_attr_getdetachstate(a, &k.detach_state);
  pthread_attr_getinheritsched(a, &k.inheritance);
  pthread_attr_getschedpolicy(a, &k.policy);
  pthread_attr_getschedparam(a, &k.parameters);
  sigset_t mask;
  if (pthread_attr_getsigmask_np(a, &mask) == 0) k.mask = mask;
  const int priority = k.parameters.sched_priority;
  const bool is_known = k.policy == SCHED_OTHER || k.policy == SCHED_FIFO || k.policy == SCHED_RR;
  return is_known && priority >= sched_get_priority_min(k.policy) &&
                 priority <= sched_get_priority_max(k.policy)
             ? 0
             : EINVAL;
}

// The C library's, from now on: sizes alone.
int set_sizes(const pthread_attr_t* a) noexcept {
  std::size_t stack = 0;
  std::size_t guard = 0;
  pthread_attr_getstacksize(a, &stack);
  pthread_attr_getguardsize(a, &guard);
  pthread_attr_t sizes;
  if (const int error = pthread_attr_init(&sizes)) return error;
  int error = pthread_attr_setstacksize(&sizes, stack);
  if (error == 0) error = pthread_attr_setguardsize(&sizes, guard);
  if (error == 0) error = pthread_setattr_default_np(&sizes);
  pthread_attr_destroy(&sizes);
  return error;
}

}  // namespace

bool defaults_have_changed() noexcept { return has_changed.load(std::memory_order_acquire); }

void hold_default_attributes() noexcept { defaults_lock.lock(); }
void release_default_attributes() noexcept { defaults_lock.unlock(); }

std::size_t default_stack_bytes() noexcept {
  std::size_t bytes = 0;
  pthread_attr_t fresh;
  if (pthread_attr_init(&fresh) != 0) return 0;
  pthread_attr_getstacksize(&fresh, &bytes);
  pthread_attr_destroy(&fresh);
  return bytes;
}

}  // namespace strata::detail::posix

using namespace strata::detail::posix;

extern "C" {

int strata_pthread_setattr_default_np(const pthread_attr_t* attributes) {
  kept_attributes wanted;
  if (has_place_of_its_own(attributes)) return EINVAL;
  if (const int error = read_defaults(attributes, wanted)) return error;
  const holding lock(defaults_lock);
  if (const int error = set_sizes(attributes)) return error;
  kept_defaults = wanted;
  has_changed.store(true, std::memory_order_release);
  return 0;
}

int strata_pthread_getattr_default_np(pthread_attr_t* attributes) {
  const holding lock(defaults_lock);
  if (const int error = pthread_getattr_default_np(attributes)) return error;
  pthread_attr_setdetachstate(attributes, kept_defaults.detach_state);
  pthread_attr_setinheritsched(attributes, kept_defaults.inheritance);
  pthread_attr_setschedpolicy(attributes, kept_defaults.policy);
  pthread_attr_setschedparam(attributes, &kept_defaults.parameters);
  const int error = kept_defaults.mask.has_value()
                        ? pthread_attr_setsigmask_np(attributes, &*kept_defaults.mask)
                        : 0;
  if (error != 0) pthread_attr_destroy(attributes);
  return error;
}
}

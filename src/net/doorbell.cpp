// SPDX-License-Identifier: Apache-2.0
#include "net/doorbell.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/errno_error.hpp"

namespace strata::net {

doorbell::doorbell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw errno_error("cannot make an eventfd", errno);
}

bool doorbell::ring() noexcept {
  if (state_.exchange(is_rung) != is_asleep) return false;
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  return true;
}

bool doorbell::may_sleep() noexcept {
  std::uint32_t seen = is_awake;
  if (state_.compare_exchange_strong(seen, is_asleep)) return true;
  state_.exchange(is_awake);
  return false;
}

void doorbell::awake() noexcept {
  // A ringer may still be about to write; then the next sleep ends early, once.
  if (state_.exchange(is_awake) == is_rung) ++owed_;
  std::uint64_t count;
  if (owed_ != 0 && ::read(event_.get(), &count, sizeof count) == ssize_t{sizeof count})
    owed_ -= count;
}

}  // namespace strata::net

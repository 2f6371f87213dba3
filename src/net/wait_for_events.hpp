// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/epoll.h>

#include <cstdint>
#include <initializer_list>
#include <span>

#include "os/descriptor.hpp"

namespace strata::net {

// To sleep on until one of them can be read; level-triggered, without data. Throws strata::error.
os::descriptor epoll_on(std::span<const int> descriptors);
inline os::descriptor epoll_on(std::initializer_list<int> descriptors) {
  return epoll_on(std::span(descriptors.begin(), descriptors.size()));
}

// Sleeps on an epoll descriptor with the precision of nanoseconds. timeout_ns < 0: for ever.
// Returns the number of events; 0 also after a signal.
int wait_for_events(int epoll, epoll_event* events, int events_max, std::int64_t timeout_ns);

// The kernel lets a sleep last up to 50 us longer unless told otherwise: for threads that sleep
// towards a deadline of that size. Of the calling thread, for good.
void sharpen_timers() noexcept;

}  // namespace strata::net

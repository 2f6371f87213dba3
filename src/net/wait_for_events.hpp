// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/epoll.h>

#include <cstdint>

namespace strata::net {

// Sleeps on an epoll descriptor with the precision of nanoseconds. timeout_ns < 0: for ever.
// Returns the number of events; 0 also after a signal.
int wait_for_events(int epoll, epoll_event* events, int events_max, std::int64_t timeout_ns);

}  // namespace strata::net

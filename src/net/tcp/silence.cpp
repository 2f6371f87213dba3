// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/silence.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace strata::net::tcp {

bool silence::lasts(int fd, std::int64_t now_ns, std::int64_t limit_ns) noexcept {
  tcp_info now{};
  socklen_t size = sizeof now;
  const bool is_known = ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &now, &size) == 0;
  // Both are set back by whatever answer comes.
  const bool repeats = (now.tcpi_unacked != 0 && now.tcpi_retransmits != 0) || now.tcpi_probes != 0;
  return lasts({is_known && repeats, std::int64_t{now.tcpi_last_ack_recv} * 1'000'000}, now_ns,
               limit_ns);
}

bool silence::lasts(const state& s, std::int64_t now_ns, std::int64_t limit_ns) noexcept {
  // Who was stopped meanwhile, as by a debugger, does not know since when: all hosts may have been.
  const bool was_stopped = looked_at_ns_ != none && now_ns - looked_at_ns_ > limit_ns / 2;
  looked_at_ns_ = now_ns;
  if (!s.repeats) {
    since_ns_ = none;
    return false;
  }
  if (since_ns_ == none || was_stopped) since_ns_ = now_ns;
  // A connection on which nothing was sent for long has heard nothing for as long.
  return std::min(s.unheard_ns, now_ns - since_ns_) >= limit_ns;
}

}  // namespace strata::net::tcp

// SPDX-License-Identifier: Apache-2.0
// What the launcher tells a node of a job without a launcher: its nodes do not come and go, and
// nobody's patience ends.
#pragma once
#include <cstdint>

#include "launch/job.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

inline constexpr std::int64_t no_limit_ns = 3'600'000'000'000;

inline launch::job_description small_job(net::node_id self, net::node_id nodes) {
  launch::job_description j;
  j.job = 7;
  j.key.fill(3);
  j.node = self;
  j.nodes = j.founders = j.capacity = nodes;
  j.start_limit_ns = no_limit_ns;
  return j;
}

}  // namespace strata::cluster

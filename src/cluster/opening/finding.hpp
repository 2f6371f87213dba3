// SPDX-License-Identifier: Apache-2.0
// Finds the networks that the hosts of a job share, where the user has named none: tries out what
// found_networks.hpp says.
#pragma once
#include <vector>

#include "base/networks.hpp"
#include "cluster/ways/joined_hosts.hpp"
#include "launch/job.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

// As if the user had named them. None: the job does as well without (found_networks::outcome), is
// one of a single host, or one of more hosts than are measured.
struct finding {
  std::vector<named_network> networks{};
  joined_hosts joins{};
};

// With all others, before exchange(). While it takes the first node of each host listens on all of
// its networks; what does not answer holds them up for a second and a half. A node that comes late
// tries nothing, and is told. Throws what control_line::share_found() does, and what it says while
// nodes connect.
finding find_networks(launch::control_line& line, const options& settings);

}  // namespace strata::cluster

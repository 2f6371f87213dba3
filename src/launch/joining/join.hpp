// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "launch/job.hpp"
#include "strata/options.hpp"

namespace strata::launch {

// The line of the job that this process was started for: by our launcher, which goes before, or by
// the site's. Null when it is a process of its own. Blocks until the other nodes of the site's job
// are there too. Throws strata::error.
std::unique_ptr<control_line> join(const options& settings);

}  // namespace strata::launch

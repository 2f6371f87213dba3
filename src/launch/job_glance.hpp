// SPDX-License-Identifier: Apache-2.0
// For a process that runs below a node and has no part in its job.
#pragma once
#include <cstdint>
#include <optional>

#include "launch/job.hpp"

namespace strata::launch {

// What the line that STRATA_JOB_FD names has to tell the node first. Line and variable stay as they
// are, for the program that comes after. Blocks until it is there, `limit_ns` at most. nullopt:
// there is no such variable, or a program has taken the line already. Throws strata::error when the
// variable names no line.
std::optional<job_description> glance_at_job(std::int64_t limit_ns);

}  // namespace strata::launch

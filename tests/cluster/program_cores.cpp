// SPDX-License-Identifier: Apache-2.0
#include "program_cores.hpp"

#include <vector>

#include "src/os/topology.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;

std::vector<int> cpus_at_first;

}  // namespace

void remember_cpus() { cpus_at_first = os::allowed_cpus(); }
void any_core(runtime&) { require(os::allowed_cpus() == cpus_at_first, "any core"); }
void one_core(runtime&) { require(os::allowed_cpus().size() == 1, "a core of its own"); }

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

// `strata agent`, which the launcher starts on other hosts: starts nodes there and carries what
// they say over its standard input and output, until the nodes or the launcher are gone. Returns
// the exit status.
int run_agent(inherited_state& inherited);

}  // namespace strata::launcher

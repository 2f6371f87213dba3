// SPDX-License-Identifier: Apache-2.0
// What the launcher shares with the nodes it calls by the names of src/launch. Below all folders.
#pragma once
#include "launch/address.hpp"

namespace strata::launcher {

using namespace launch;
using launch::node_id;  // strata has a function of this name

}  // namespace strata::launcher

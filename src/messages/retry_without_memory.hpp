// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/words/retry_without_memory.hpp"

namespace strata::messages {

using cluster::retry_without_memory;

}  // namespace strata::messages

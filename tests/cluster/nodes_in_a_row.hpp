// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "cluster/ways/routes.hpp"

namespace strata::cluster {

// Ways between nodes in a row: only neighbours have one.
inline std::optional<std::int64_t> row(node_id a, node_id b) {
  return a + 1 == b || b + 1 == a ? std::optional<std::int64_t>(1) : std::nullopt;
}

}  // namespace strata::cluster

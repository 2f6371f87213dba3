// SPDX-License-Identifier: Apache-2.0
// What a program is told of a way (strata/route.hpp): what was measured, else what is nominal.
#pragma once
#include <cstdint>

#include "cluster/ways/routes.hpp"
#include "strata/route.hpp"

namespace strata::cluster {

// What carries messages to the first node on a way.
enum class first_hop : std::uint8_t { memory, within_host, network };

// transport: its name, for people.
[[nodiscard]] route told_route(const routes::way& w, first_hop first, const char* transport);

}  // namespace strata::cluster

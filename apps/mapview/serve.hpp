// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "apps/common/program.hpp"
#include "apps/mapview/loader.hpp"

namespace mapview {

// Shows the map in a web page on 127.0.0.1 until SIGINT or SIGTERM comes; port 0: any. `loader_for`
// is called within the runtime. Returns what main() is to return.
int serve(apps::program& p, const std::string& root, std::uint16_t port,
          const loader_maker& loader_for);

}  // namespace mapview
